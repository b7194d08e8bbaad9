-- State tables as the first version created them (sqlite). The migrations' starting point: never changed.
CREATE TABLE iceberg_tables (
	catalog_name VARCHAR(255) NOT NULL, 
	table_namespace VARCHAR(255) NOT NULL, 
	table_name VARCHAR(255) NOT NULL, 
	metadata_location VARCHAR(1000), 
	previous_metadata_location VARCHAR(1000), 
	iceberg_type VARCHAR(5), 
	PRIMARY KEY (catalog_name, table_namespace, table_name)
);
CREATE TABLE iceberg_namespace_properties (
	catalog_name VARCHAR(255) NOT NULL, 
	namespace VARCHAR(255) NOT NULL, 
	property_key VARCHAR(255) NOT NULL, 
	property_value VARCHAR(1000) NOT NULL, 
	PRIMARY KEY (catalog_name, namespace, property_key)
);
CREATE TABLE permalake_networks (
	network VARCHAR(64) NOT NULL, 
	turn BIGINT NOT NULL, 
	PRIMARY KEY (network)
);
CREATE TABLE permalake_leases (
	network VARCHAR(64) NOT NULL, 
	start DATE NOT NULL, 
	"end" DATE NOT NULL, 
	run_id VARCHAR(250) NOT NULL, 
	taken_at VARCHAR(27) NOT NULL, 
	beat_at VARCHAR(27) NOT NULL, 
	PRIMARY KEY (network, start, "end")
);
CREATE TABLE permalake_attempts (
	attempt_id VARCHAR(64) NOT NULL, 
	network VARCHAR(64) NOT NULL, 
	start DATE NOT NULL, 
	"end" DATE NOT NULL, 
	run_id VARCHAR(250) NOT NULL, 
	state VARCHAR(16) NOT NULL, 
	begun_at VARCHAR(27) NOT NULL, 
	pinned_at VARCHAR(27), 
	fingerprint TEXT NOT NULL, 
	notes TEXT NOT NULL, 
	publication_id INTEGER, 
	PRIMARY KEY (attempt_id)
);
CREATE INDEX ix_permalake_attempts_network ON permalake_attempts (network);
CREATE INDEX ix_permalake_attempts_run_id ON permalake_attempts (run_id);
CREATE TABLE permalake_attempt_tables (
	attempt_id VARCHAR(64) NOT NULL, 
	table_name VARCHAR(255) NOT NULL, 
	base_location VARCHAR(1000) NOT NULL, 
	pinned_location VARCHAR(1000), 
	PRIMARY KEY (attempt_id, table_name)
);
CREATE TABLE permalake_attempt_days (
	attempt_id VARCHAR(64) NOT NULL, 
	date DATE NOT NULL, 
	refused TEXT, 
	audited VARCHAR(8), 
	failures TEXT, 
	notes TEXT, 
	PRIMARY KEY (attempt_id, date)
);
CREATE TABLE permalake_days (
	network VARCHAR(64) NOT NULL, 
	date DATE NOT NULL, 
	run_id VARCHAR(250), 
	attempt_id VARCHAR(64), 
	built_at VARCHAR(27), 
	audited VARCHAR(8), 
	failures TEXT, 
	refused TEXT, 
	published_at VARCHAR(27), 
	publication_id INTEGER, 
	rows TEXT, 
	quarantined BIGINT NOT NULL, 
	notes TEXT, 
	stale_reason TEXT, 
	PRIMARY KEY (network, date)
);
CREATE TABLE permalake_publications (
	id INTEGER NOT NULL, 
	kind VARCHAR(16) NOT NULL, 
	network VARCHAR(64) NOT NULL, 
	start DATE NOT NULL, 
	"end" DATE NOT NULL, 
	attempt_id VARCHAR(64) NOT NULL, 
	run_id VARCHAR(250) NOT NULL, 
	fingerprint TEXT NOT NULL, 
	replayed INTEGER NOT NULL, 
	published_at VARCHAR(27) NOT NULL, 
	PRIMARY KEY (id)
);
CREATE INDEX ix_permalake_publications_published_at ON permalake_publications (published_at);
CREATE INDEX ix_permalake_publications_network ON permalake_publications (network);
CREATE TABLE permalake_publication_tables (
	publication_id INTEGER NOT NULL, 
	network VARCHAR(64) NOT NULL, 
	table_name VARCHAR(255) NOT NULL, 
	metadata_location VARCHAR(1000) NOT NULL, 
	PRIMARY KEY (publication_id, network, table_name)
);
INSERT INTO permalake_networks VALUES ('shimmer', 3);
INSERT INTO permalake_leases (network, start, "end", run_id, taken_at, beat_at) VALUES
    ('shimmer', '2022-09-28', '2022-09-28', 'long gone', '2022-10-01T00:00:00.000000Z', '2022-10-01T00:00:00.000000Z');
INSERT INTO permalake_days (network, date, run_id, attempt_id, built_at, audited, rows, quarantined) VALUES
    ('shimmer', '2022-09-28', 'long gone', 'stage_000000000000', '2022-10-01T00:00:00.000000Z', 'passed', '{"messages": 81}', 2);
