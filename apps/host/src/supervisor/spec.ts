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
