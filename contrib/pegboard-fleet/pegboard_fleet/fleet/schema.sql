-- The tables of a fleet, version 1. A released version never changes; the next is a file of its own.
--
-- Rows have JSON as bytes. `tenant` is the role that wrote a row; each role sees its own rows only.
-- `owner` is the id of a process in the table `worker` of pegboard-postgres, which has its lease.

CREATE TABLE fleet_worker(
    owner text COLLATE "C" PRIMARY KEY,
    tenant text NOT NULL DEFAULT current_user,
    pool text NOT NULL,
    host text NOT NULL,
    pid integer NOT NULL,
    concurrency integer NOT NULL,
    started timestamptz NOT NULL DEFAULT clock_timestamp(),
    -- working, draining; lost: its jobs must be queued again; ended: they are.
    state text NOT NULL DEFAULT 'working'
);

CREATE TABLE fleet_batch(
    id text COLLATE "C" PRIMARY KEY,
    tenant text NOT NULL DEFAULT current_user,
    pool text NOT NULL,
    created timestamptz NOT NULL DEFAULT clock_timestamp(),
    settings bytea NOT NULL,
    budget_usd numeric,
    spent_usd numeric NOT NULL DEFAULT 0,
    held_usd numeric NOT NULL DEFAULT 0,
    begins_at timestamptz NOT NULL DEFAULT '-infinity'
) WITH (fillfactor = 50);

CREATE TABLE fleet_job(
    ordinal bigint GENERATED ALWAYS AS IDENTITY,
    tenant text NOT NULL DEFAULT current_user,
    batch_id text COLLATE "C" NOT NULL REFERENCES fleet_batch,
    id text COLLATE "C" NOT NULL,
    attempt integer NOT NULL,
    data bytea NOT NULL,
    -- queued, running, stopped, or the status of its result.
    state text NOT NULL DEFAULT 'queued',
    owner text COLLATE "C",
    round integer NOT NULL DEFAULT 0,
    begun integer[] NOT NULL DEFAULT '{}',
    result bytea,
    PRIMARY KEY(batch_id, id, attempt)
) WITH (fillfactor = 70);
CREATE INDEX fleet_job_state ON fleet_job(batch_id, state);
CREATE INDEX fleet_job_running ON fleet_job(owner) WHERE state = 'running';

-- Money for requests that run, or whose worker died before their cost was known.
CREATE TABLE fleet_hold(
    id bigint PRIMARY KEY,
    tenant text NOT NULL DEFAULT current_user,
    batch_id text COLLATE "C" NOT NULL REFERENCES fleet_batch,
    owner text COLLATE "C" NOT NULL,
    usd numeric NOT NULL
);
CREATE INDEX fleet_hold_batch ON fleet_hold(batch_id);

DO $$
DECLARE
    name text;
BEGIN
    FOREACH name IN ARRAY ARRAY['fleet_worker', 'fleet_batch', 'fleet_job', 'fleet_hold']
    LOOP
        EXECUTE format('ALTER TABLE %I ENABLE ROW LEVEL SECURITY', name);
        EXECUTE format('ALTER TABLE %I FORCE ROW LEVEL SECURITY', name);
        EXECUTE format('CREATE POLICY own_rows ON %I USING (tenant = current_user)', name);
    END LOOP;
END $$;
