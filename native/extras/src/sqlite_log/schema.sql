-- Every datagram that an endpoint sent or received.
CREATE TABLE IF NOT EXISTS datagrams (
    id INTEGER PRIMARY KEY,
    at REAL NOT NULL,           -- seconds since 1970-01-01, UTC
    local TEXT NOT NULL,        -- the address of the endpoint
    remote TEXT NOT NULL,
    direction TEXT NOT NULL,    -- 'in' or 'out'
    kind TEXT NOT NULL,         -- the kind, without numbers
    description TEXT NOT NULL,  -- the kind, with the most important numbers
    length INTEGER NOT NULL,    -- bytes, without IP and UDP headers
    bytes BLOB                  -- NULL unless they are kept
);

-- Counters and measurements, one per row.
CREATE TABLE IF NOT EXISTS samples (
    id INTEGER PRIMARY KEY,
    at REAL NOT NULL,
    local TEXT NOT NULL,
    remote TEXT,                -- the peer of a connection; NULL for the whole endpoint
    name TEXT NOT NULL,
    value REAL NOT NULL
);

-- Records that could not be written in time.
CREATE TABLE IF NOT EXISTS gaps (
    at REAL NOT NULL,
    records INTEGER NOT NULL
);

-- Datagrams and bytes per second.
CREATE VIEW IF NOT EXISTS traffic AS
SELECT datetime(CAST(at AS INTEGER), 'unixepoch') AS second,
       sum(direction = 'in') AS datagrams_in,
       sum(CASE direction WHEN 'in' THEN length ELSE 0 END) AS bytes_in,
       sum(direction = 'out') AS datagrams_out,
       sum(CASE direction WHEN 'out' THEN length ELSE 0 END) AS bytes_out
FROM datagrams GROUP BY CAST(at AS INTEGER) ORDER BY CAST(at AS INTEGER);

-- Kinds of datagrams, largest total size first.
CREATE VIEW IF NOT EXISTS kinds AS
SELECT kind, direction, count(*) AS datagrams, sum(length) AS bytes,
       round(avg(length), 1) AS mean_length,
       round(100.0 * sum(length) / (SELECT max(sum(length), 1) FROM datagrams), 1) AS percent
FROM datagrams GROUP BY kind, direction ORDER BY bytes DESC, kind, direction;

-- Peers: first seen, traffic, and the latest samples of their connections.
CREATE VIEW IF NOT EXISTS remotes AS
SELECT remote,
       datetime(CAST(min(at) AS INTEGER), 'unixepoch') AS first_seen,
       datetime(CAST(max(at) AS INTEGER), 'unixepoch') AS last_seen,
       sum(direction = 'in') AS datagrams_in,
       sum(direction = 'out') AS datagrams_out,
       sum(length) AS bytes,
       (SELECT round(1000 * value, 3) FROM samples
        WHERE samples.remote = datagrams.remote AND name = 'round_trip' ORDER BY id DESC LIMIT 1) AS round_trip_ms,
       (SELECT CAST(value AS INTEGER) FROM samples
        WHERE samples.remote = datagrams.remote AND name IN ('datagrams_missing', 'chunks_missing')
        ORDER BY id DESC LIMIT 1) AS lost
FROM datagrams GROUP BY remote ORDER BY bytes DESC, remote;

CREATE INDEX IF NOT EXISTS samples_by_remote ON samples (remote, name, id);
