/** Id of the task of a run among its messages. */
export const TASK = 'task'
/** Messages of one conversation or run whose files are kept; the oldest are given up. */
const MAX_TURNS = 50
/** Files as they were before a restore that are kept; the oldest are given up. */
export const MAX_UNDO_VERSIONS = 10

/** How long a message waits until the files are kept as they are before it. Unchanged files take a few milliseconds. */
export const HOLD_MS = 3_000
/** The same for the first message of the agent's program: its start takes seconds, and a new repository must be saved whole. */
export const HOLD_AT_START_MS = 20_000

/** A version of the sandbox's files that is kept for a message, or why there is none. */
export interface Held {
  readonly version: number | null
  /** `no_store`: this server does not save files. Else the code of an error. */
  readonly problem: string | null
}

/** A message of a person, and the files when the agent got it. */
export interface Turn extends Held {
  /** Id of the message. */
  readonly message: string
}

/** What a request to restore names: a message, or the last restore, to undo it. */
export type RestoreTarget = { readonly message: string } | { readonly undo: true }

/** Files to which a conversation or run can go back. */
export interface RestorePoints {
  readonly turns: readonly Turn[]
  /** Versions of the files before each restore, newest last. */
  readonly undoVersions: readonly number[]
}

/** What clients see of it. */
export interface RestorePointsView {
  readonly turns: readonly Turn[]
  /** The last restore can be undone. */
  readonly canUndo: boolean
  /** Files are being restored. */
  readonly isRestoring: boolean
}

/** Adds a message; another turn with the same id is replaced. */
export function addTurn(turns: readonly Turn[], turn: Turn): readonly Turn[] {
  return [...turns.filter(({ message }) => message !== turn.message), turn].slice(-MAX_TURNS)
}

/** Versions that must be kept. */
export function keptVersions({ turns, undoVersions }: RestorePoints): readonly number[] {
  return [...new Set([...turns.flatMap(({ version }) => version ?? []), ...undoVersions])]
}

/** The version that a request means; undefined when there is none. */
export function versionOf({ turns, undoVersions }: RestorePoints, target: RestoreTarget): number | undefined {
  if ('undo' in target) return undoVersions.at(-1)
  return turns.find(({ message }) => message === target.message)?.version ?? undefined
}

/** A version was deleted. */
export function forgetVersion({ turns, undoVersions }: RestorePoints, version: number): RestorePoints {
  return {
    turns: turns.map((turn) =>
      turn.version === version ? { ...turn, version: null, problem: 'not_found' } : turn,
    ),
    undoVersions: undoVersions.filter((each) => each !== version),
  }
}
