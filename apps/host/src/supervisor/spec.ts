import { readFileSync } from 'node:fs'
import { MAX_SLOTS, startSpecSchema } from '@sandwire/internal-api'
import { schema } from '@sandwire/protocol'

const pathSchema = schema.text(4096, /^\//)

const isolationSchema = schema.record({
  kind: schema.oneOf(['bubblewrap', 'none']),
  dataFolder: pathSchema,
  runBase: pathSchema,
  scope: schema.optional(schema.text(8)),
  account: schema.optional(schema.text(64, /^[0-9a-z]+$/)),
  program: schema.record({
    executable: pathSchema,
    code: schema.optional(schema.record({ folder: pathSchema, entry: schema.text(4096) })),
  }),
  isRoot: schema.bool,
  diskBytesPerSecond: schema.optional(schema.nonNegativeInteger),
  egressCode: schema.optional(pathSchema),
  hasOverlays: schema.optional(schema.bool),
  workspace: schema.optional(pathSchema),
})

const specSchema = schema.record({
  start: startSpecSchema,
  isolation: isolationSchema,
  /** Folder of state and log. */
  folder: pathSchema,
  controlSocket: pathSchema,
  /** Slots of the data folder. */
  slots: schema.record({
    folder: pathSchema,
    count: schema.integer(1, MAX_SLOTS),
    group: schema.optional(schema.nonNegativeInteger),
  }),
  /** Folder of control's gates, one socket for each slot; absent: no credential gateway. */
  gates: schema.optional(pathSchema),
  unclaimedMs: schema.integer(1, 2 ** 31 - 1),
  readyMs: schema.integer(1, 2 ** 31 - 1),
  /** Control saves the files of the sandbox. */
  savesFiles: schema.optional(schema.bool),
  /** How much the sandbox may write to its disk image until the host sets another limit; no limit when absent. */
  growthBytes: schema.optional(schema.nonNegativeInteger),
})

/** The isolation that a supervisor creates. */
export type IsolationChoice = schema.Decoded<typeof isolationSchema>
/** Input of a supervisor, in a private file. */
export type SupervisorSpec = schema.Decoded<typeof specSchema>

/** Reads a spec; undefined for another version. Throws when the file is missing. */
export function readSpec(file: string): SupervisorSpec | undefined {
  return specSchema.decode(JSON.parse(readFileSync(file, 'utf8')))
}

/** Reason of a start that failed because the sandbox had files and they are missing. */
export const FILES_MISSING = 'files_missing'
/** Time without a claim after which a supervisor stops its sandbox. */
export const UNCLAIMED_MS = 10 * 60_000
/** Time for sandboxd to become ready; a cold start on a loaded machine takes seconds. */
export const READY_MS = 20_000
/** Time for control to save the files once more when the host shuts down. */
export const LAST_SAVE_MS = 15_000
/** Time for sandboxd to end its processes. */
export const STOP_GRACE_MS = 5_000
/** The log of a sandbox and its predecessor take at most twice this. */
export const MAX_LOG_BYTES = 4 * 1024 * 1024
/** Longest message of a sandbox in one log line. */
export const MAX_LOG_LINE_CHARS = 8 * 1024
