/** Tables that databases of earlier servers lack; created whenever a store is opened. */
export const ADDED_VERSION_TABLES: readonly string[] = [
  // Versions that a conversation or run keeps, because its messages can be restored to them.
  `CREATE TABLE IF NOT EXISTS held_versions (
    holder TEXT NOT NULL,
    number INTEGER NOT NULL,
    PRIMARY KEY (holder, number)
  )`,
  // The last restore of the workspace that each conversation or run has requested.
  `CREATE TABLE IF NOT EXISTS workspace_restores (
    holder TEXT PRIMARY KEY,
    -- Names the restore: a repeated request does not restore again.
    key TEXT NOT NULL,
    -- The version with the files as they were before.
    present INTEGER NOT NULL,
    is_done INTEGER NOT NULL
  )`,
  // Set while the pending restore is only of the workspace.
  `CREATE TABLE IF NOT EXISTS partial_restore (
    one INTEGER PRIMARY KEY CHECK (one = 1),
    -- The version with the other folders.
    rest INTEGER NOT NULL,
    -- 1: they are not on the disk, and so are restored too.
    is_rest_missing INTEGER NOT NULL
  )`,
]

/** Tables of the versions of a sandbox. */
export const VERSION_SCHEMA: readonly string[] = [
  `CREATE TABLE segments (
    id TEXT PRIMARY KEY,
    lineage TEXT NOT NULL,
    bytes INTEGER NOT NULL,
    trailer_bytes INTEGER NOT NULL,
    sha256 TEXT NOT NULL,
    -- Since when no version and no fork needs it; NULL: one does.
    unused_ms INTEGER
  )`,
  // AUTOINCREMENT: the number of a deleted version is never given to another.
  `CREATE TABLE versions (
    number INTEGER PRIMARY KEY AUTOINCREMENT,
    save TEXT NOT NULL,
    created_ms INTEGER NOT NULL,
    kind TEXT NOT NULL,
    name TEXT UNIQUE,
    is_fuzzy INTEGER NOT NULL,
    unreadable INTEGER NOT NULL,
    -- JSON: the segments with the manifests, from the base to this version.
    manifests TEXT NOT NULL,
    -- JSON: all segments that the version needs.
    segments TEXT NOT NULL
  )`,
  // Sandboxes that were made from a version, and the segments (JSON) that they may need.
  `CREATE TABLE forks (
    sandbox TEXT PRIMARY KEY,
    -- When it was made, or last said that it needs them.
    checked_ms INTEGER NOT NULL,
    segments TEXT NOT NULL
  )`,
  // The sandbox, when it was destroyed and forks still need its segments.
  'CREATE TABLE destroyed (one INTEGER PRIMARY KEY CHECK (one = 1), sandbox TEXT NOT NULL)',
  // The version that the next start restores.
  `CREATE TABLE pending_restore (
    one INTEGER PRIMARY KEY CHECK (one = 1),
    number INTEGER NOT NULL,
    -- 1: a user asked for it. 0: the files of the sandbox are missing.
    is_requested INTEGER NOT NULL
  )`,
  // Settings of the sandbox and of its account, JSON.
  'CREATE TABLE retention (one INTEGER PRIMARY KEY CHECK (one = 1), sandbox TEXT NOT NULL, account TEXT NOT NULL)',
  // The last start whose files are complete, so that a repeated start does not replace them.
  `CREATE TABLE last_start (
    one INTEGER PRIMARY KEY CHECK (one = 1),
    epoch TEXT NOT NULL,
    -- Where its files are, or were.
    provider TEXT NOT NULL,
    -- 1: its files were saved after its last process had ended, or while all were stopped.
    is_saved INTEGER NOT NULL,
    -- What was restored at this start; NULL: it found its files.
    number INTEGER,
    saved_ms INTEGER,
    restored_ms INTEGER,
    reason TEXT
  )`,
  ...ADDED_VERSION_TABLES,
]
