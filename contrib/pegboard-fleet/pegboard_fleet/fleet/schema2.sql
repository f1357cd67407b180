-- The tables of a fleet, version 2: jobs that commands repeat, and which servers there are.

-- How often a command has queued the job: a worker with an earlier delivery has lost it.
ALTER TABLE fleet_job ADD COLUMN delivery integer NOT NULL DEFAULT 0;

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
