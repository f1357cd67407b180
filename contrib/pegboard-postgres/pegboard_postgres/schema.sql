-- The tables of version 1. A released version never changes; the next one is a file of its own.
--
-- Rows have the wire JSON as bytes: jsonb refuses \u0000 and reorders keys. `ordinal` is the order
-- of creation. `tenant` is the role that wrote a row; each role reads and writes its own rows only.

CREATE TABLE meta(key text PRIMARY KEY, value bigint NOT NULL);
-- Added to the numbers of transactions: those of another server, after a dump is restored there,
-- begin with smaller ones, and the numbers of events must ascend.
INSERT INTO meta VALUES('seq_base', 0);

CREATE TABLE worker(
    id text COLLATE "C" PRIMARY KEY,
    tenant text NOT NULL DEFAULT current_user,
    host text NOT NULL,
    pid integer NOT NULL,
    started timestamptz NOT NULL DEFAULT clock_timestamp(),
    lease_until timestamptz NOT NULL
) WITH (fillfactor = 50);

-- The last transaction that each worker has committed, in its own count.
CREATE TABLE receipt(
    worker text COLLATE "C" PRIMARY KEY,
    tenant text NOT NULL DEFAULT current_user,
    number bigint NOT NULL
) WITH (fillfactor = 10);

CREATE TABLE project(
    ordinal bigint GENERATED ALWAYS AS IDENTITY,
    tenant text NOT NULL DEFAULT current_user,
    id text COLLATE "C" NOT NULL,
    data bytea NOT NULL,
    PRIMARY KEY(tenant, id)
);

CREATE TABLE session(
    ordinal bigint GENERATED ALWAYS AS IDENTITY,
    tenant text NOT NULL DEFAULT current_user,
    id text COLLATE "C" PRIMARY KEY,
    project_id text COLLATE "C" NOT NULL,
    parent_id text COLLATE "C",
    directory text NOT NULL,
    title text NOT NULL,
    updated bigint NOT NULL,
    owner text COLLATE "C",
    epoch bigint NOT NULL DEFAULT 0,
    data bytea NOT NULL
) WITH (fillfactor = 70);
CREATE INDEX session_recent ON session(tenant, updated, ordinal);
CREATE INDEX session_recent_of_project ON session(tenant, project_id, updated, ordinal);
CREATE INDEX session_child ON session(parent_id) WHERE parent_id IS NOT NULL;
CREATE INDEX session_owned ON session(owner) WHERE owner IS NOT NULL;

CREATE TABLE message(
    ordinal bigint GENERATED ALWAYS AS IDENTITY,
    tenant text NOT NULL DEFAULT current_user,
    session_id text COLLATE "C" NOT NULL REFERENCES session ON DELETE CASCADE,
    id text COLLATE "C" NOT NULL,
    role text NOT NULL,
    unfinished boolean NOT NULL,
    data bytea NOT NULL,
    PRIMARY KEY(session_id, id)
) WITH (fillfactor = 80);
CREATE INDEX message_unfinished ON message(session_id) WHERE unfinished;

CREATE TABLE part(
    ordinal bigint GENERATED ALWAYS AS IDENTITY,
    tenant text NOT NULL DEFAULT current_user,
    session_id text COLLATE "C" NOT NULL,
    message_id text COLLATE "C" NOT NULL,
    id text COLLATE "C" NOT NULL,
    state text,
    data bytea NOT NULL,
    PRIMARY KEY(session_id, id),
    FOREIGN KEY(session_id, message_id) REFERENCES message ON DELETE CASCADE
) WITH (fillfactor = 80);
CREATE INDEX part_of_message ON part(session_id, message_id);
CREATE INDEX part_unfinished ON part(session_id) WHERE state IS NOT NULL;

CREATE TABLE part_text(
    ordinal bigint GENERATED ALWAYS AS IDENTITY,
    tenant text NOT NULL DEFAULT current_user,
    session_id text COLLATE "C" NOT NULL,
    part_id text COLLATE "C" NOT NULL,
    piece bytea NOT NULL,
    PRIMARY KEY(session_id, part_id, ordinal),
    FOREIGN KEY(session_id, part_id) REFERENCES part ON DELETE CASCADE
);

CREATE TABLE todos(
    tenant text NOT NULL DEFAULT current_user,
    session_id text COLLATE "C" PRIMARY KEY REFERENCES session ON DELETE CASCADE,
    data bytea NOT NULL
);

CREATE TABLE state(
    tenant text NOT NULL DEFAULT current_user,
    session_id text COLLATE "C" NOT NULL REFERENCES session ON DELETE CASCADE,
    key text COLLATE "C" NOT NULL,
    data bytea NOT NULL,
    PRIMARY KEY(session_id, key)
);

CREATE TABLE approval(
    ordinal bigint GENERATED ALWAYS AS IDENTITY,
    tenant text NOT NULL DEFAULT current_user,
    key text COLLATE "C" NOT NULL,
    permission text NOT NULL,
    pattern text NOT NULL,
    action text NOT NULL,
    agent text NOT NULL,
    at bigint NOT NULL,
    PRIMARY KEY(tenant, key, permission, pattern, agent)
);

CREATE TABLE permission_request(
    ordinal bigint GENERATED ALWAYS AS IDENTITY,
    tenant text NOT NULL DEFAULT current_user,
    session_id text COLLATE "C" NOT NULL REFERENCES session ON DELETE CASCADE,
    id text COLLATE "C" NOT NULL,
    data bytea NOT NULL,
    PRIMARY KEY(session_id, id)
);

-- The event of an update has no data: it is read with the row of `type` that `id` names.
CREATE TABLE event(
    seq bigint PRIMARY KEY,
    tenant text NOT NULL DEFAULT current_user,
    at timestamptz NOT NULL DEFAULT clock_timestamp(),
    session_id text COLLATE "C",
    type text NOT NULL,
    id text COLLATE "C",
    data bytea
);
CREATE INDEX event_of_session ON event(session_id);
CREATE INDEX event_age ON event USING brin(at);

DO $$
DECLARE
    name text;
BEGIN
    FOREACH name IN ARRAY ARRAY['worker', 'receipt', 'project', 'session', 'message', 'part', 'part_text',
        'todos', 'state', 'approval', 'permission_request', 'event']
    LOOP
        EXECUTE format('ALTER TABLE %I ENABLE ROW LEVEL SECURITY', name);
        EXECUTE format('ALTER TABLE %I FORCE ROW LEVEL SECURITY', name);
        EXECUTE format('CREATE POLICY own_rows ON %I USING (tenant = current_user)', name);
    END LOOP;
END $$;

-- Write changes whose sessions the caller has locked. The change in place n has the number
-- first + n; the answer has for each place that number, 0 for an event that is only published, and
-- NULL for none.
CREATE FUNCTION write_changes(
    first bigint, kinds text[], sessions text[], ids text[], parents text[], words text[],
    labels text[], numbers bigint[], datas bytea[], types text[]
) RETURNS bigint[] LANGUAGE plpgsql AS $$
DECLARE
    told bigint[] := array_fill(NULL::bigint, ARRAY[cardinality(kinds)]);
    change record;
    known record;
    was_open boolean;
BEGIN
    FOR change IN SELECT * FROM unnest(
        kinds, sessions, ids, parents, words, labels, numbers, datas, types
    ) WITH ORDINALITY AS c(kind, session_id, id, parent, word, label, number, data, type, place)
    LOOP
        IF change.type IS NOT NULL THEN
            told[change.place] := first + change.place;
        END IF;
        CASE change.kind
        WHEN 'part' THEN
            SELECT message_id, state INTO known FROM part
                WHERE session_id = change.session_id AND id = change.id;
            IF NOT FOUND THEN
                INSERT INTO part(session_id, id, message_id, state, data)
                    SELECT session_id, change.id, message.id, change.word, change.data FROM message
                    WHERE message.session_id = change.session_id AND message.id = change.parent;
                IF NOT FOUND THEN
                    RAISE SQLSTATE 'PB404' USING MESSAGE = 'message', DETAIL = change.parent;
                END IF;
            ELSIF known.message_id <> change.parent THEN
                RAISE SQLSTATE 'PB422' USING MESSAGE = known.message_id, DETAIL = change.id;
            ELSE
                UPDATE part SET state = change.word, data = change.data
                    WHERE session_id = change.session_id AND id = change.id;
                was_open := known.state IS NOT DISTINCT FROM 'open';
                IF was_open THEN
                    DELETE FROM part_text
                        WHERE session_id = change.session_id AND part_id = change.id;
                END IF;
                IF known.state = change.word THEN -- progress
                    told[change.place] := CASE change.number WHEN 1 THEN 0 END;
                ELSIF change.number = 0 AND NOT was_open THEN
                    told[change.place] := NULL;
                END IF;
            END IF;
        WHEN 'text' THEN
            UPDATE part SET state = 'open' WHERE session_id = change.session_id
                AND id = change.id AND state IS DISTINCT FROM 'open';
            INSERT INTO part_text(session_id, part_id, piece)
                SELECT session_id, id, change.data FROM part
                WHERE session_id = change.session_id AND id = change.id;
        WHEN 'message' THEN
            INSERT INTO message(session_id, id, role, unfinished, data)
                VALUES(change.session_id, change.id, change.word, change.number = 1, change.data)
                ON CONFLICT(session_id, id) DO UPDATE SET role = excluded.role,
                unfinished = excluded.unfinished, data = excluded.data;
        WHEN 'change' THEN
            UPDATE session SET title = change.label, updated = change.number, data = change.data
                WHERE id = change.session_id;
        WHEN 'session' THEN
            INSERT INTO session(id, project_id, parent_id, directory, title, updated, data)
                VALUES(change.session_id, change.id, change.parent, change.word, change.label,
                    change.number, change.data);
        WHEN 'project' THEN
            INSERT INTO project(id, data) VALUES(change.id, change.data)
                ON CONFLICT(tenant, id) DO UPDATE SET data = excluded.data;
        WHEN 'event' THEN
            NULL;
        WHEN 'drop_session' THEN
            DELETE FROM session WHERE id = change.session_id;
            DELETE FROM event WHERE session_id = change.session_id;
            DELETE FROM approval WHERE key = change.session_id;
        WHEN 'drop_message' THEN
            DELETE FROM message WHERE session_id = change.session_id AND id = change.id;
            IF NOT FOUND THEN
                told[change.place] := NULL;
            END IF;
        WHEN 'drop_part' THEN
            DELETE FROM part WHERE session_id = change.session_id AND id = change.id
                AND message_id = change.parent;
            IF NOT FOUND THEN
                told[change.place] := NULL;
            END IF;
        WHEN 'todos' THEN
            INSERT INTO todos(session_id, data) VALUES(change.session_id, change.data)
                ON CONFLICT(session_id) DO UPDATE SET data = excluded.data;
        WHEN 'state' THEN
            INSERT INTO state(session_id, key, data)
                VALUES(change.session_id, change.id, change.data)
                ON CONFLICT(session_id, key) DO UPDATE SET data = excluded.data;
        WHEN 'drop_state' THEN
            DELETE FROM state WHERE session_id = change.session_id AND key = change.id;
        WHEN 'approval' THEN
            INSERT INTO approval(key, permission, pattern, action, agent, at)
                VALUES(change.session_id, change.id, change.parent, change.word, change.label,
                    change.number)
                ON CONFLICT(tenant, key, permission, pattern, agent)
                DO UPDATE SET action = excluded.action, at = excluded.at;
        WHEN 'drop_approval' THEN
            DELETE FROM approval WHERE ordinal = change.number;
        WHEN 'request' THEN
            INSERT INTO permission_request(session_id, id, data)
                VALUES(change.session_id, change.id, change.data)
                ON CONFLICT(session_id, id) DO UPDATE SET data = excluded.data;
        WHEN 'settle' THEN
            DELETE FROM permission_request
                WHERE session_id = change.session_id AND id = change.id;
            IF NOT FOUND THEN
                told[change.place] := NULL;
            END IF;
        END CASE;
    END LOOP;
    INSERT INTO event(seq, session_id, type, id, data)
        SELECT told[place], session_id, type, id,
            CASE WHEN kind NOT IN ('part', 'message', 'change', 'session', 'project', 'todos')
            THEN data END
        FROM unnest(kinds, sessions, ids, datas, types)
            WITH ORDINALITY AS c(kind, session_id, id, data, type, place)
        WHERE told[place] > 0;
    RETURN told;
END $$;
