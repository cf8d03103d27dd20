import { readFileSync } from 'node:fs'
import { MAX_SLOTS, startSpecShape } from '@sandwire/internal-api'
import { shape } from '@sandwire/protocol'

const pathShape = shape.text(4096, /^\//)

const isolationShape = shape.record({
  kind: shape.oneOf(['bubblewrap', 'none']),
  dataFolder: pathShape,
  runBase: pathShape,
  program: shape.record({
    executable: pathShape,
    code: shape.optional(shape.record({ folder: pathShape, entry: shape.text(4096) })),
  }),
  isRoot: shape.bool,
  workspace: shape.optional(pathShape),
})

const specShape = shape.record({
  start: startSpecShape,
  isolation: isolationShape,
  /** Where state and log are kept. */
  folder: pathShape,
  controlSocket: pathShape,
  /** Where the ways into sandboxes are. */
  slots: shape.record({ folder: pathShape, count: shape.whole(1, MAX_SLOTS) }),
  unclaimedMs: shape.whole(1, 2 ** 31 - 1),
  readyMs: shape.whole(1, 2 ** 31 - 1),
})

/** How the sandboxes of a machine are isolated, as a supervisor is told. */
export type IsolationChoice = shape.Decoded<typeof isolationShape>
/** Everything a supervisor is told; it travels in a file that only this user can read. */
export type SupervisorSpec = shape.Decoded<typeof specShape>

/** Reads a spec; undefined when it is none of this version. Throws when there is no such file. */
export function readSpec(file: string): SupervisorSpec | undefined {
  return specShape.decode(JSON.parse(readFileSync(file, 'utf8')))
}

/** How long a supervisor serves without anybody saying that its sandbox is wanted. */
export const UNCLAIMED_MS = 10 * 60_000
/** Time sandboxd has to say that it listens; a cold start on a loaded machine takes seconds. */
export const READY_MS = 20_000
/** Time sandboxd has to end its processes in order. */
export const STOP_GRACE_MS = 5_000
/** The log of a sandbox and the one before it together take at most twice this. */
export const MAX_LOG_BYTES = 4 * 1024 * 1024
/** What a line of the log may carry of what a sandbox wrote. */
export const MAX_LOG_LINE_CHARS = 8 * 1024
