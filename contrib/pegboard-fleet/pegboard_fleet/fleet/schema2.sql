-- The tables of a fleet, version 2: which servers there are, and which sessions run on them.
--
-- `owner` is the id of a server, or of one of its Apps, in the table `worker` of pegboard-postgres.

CREATE TABLE fleet_server(
    owner text COLLATE "C" PRIMARY KEY,
    tenant text NOT NULL DEFAULT current_user,
    server text COLLATE "C" NOT NULL,
    host text NOT NULL,
    url text NOT NULL
);

ALTER TABLE fleet_server ENABLE ROW LEVEL SECURITY;
ALTER TABLE fleet_server FORCE ROW LEVEL SECURITY;
CREATE POLICY own_rows ON fleet_server USING (tenant = current_user);
