import type { Root } from '../beneath/root.ts'

/** What the verbs of this folder work with. */
export interface Ground {
  readonly root: Root
  /** Monotonic milliseconds. */
  readonly now: () => number
  /** Permission bits that new files do not get. */
  readonly umask: number
}

/**
 * Work on files that may take long: it stops at every `yield`, so that others get their turn, and goes on when it is asked to.
 * What it yields, if anything, is a part of its result. Ending it early closes what it has open.
 */
export type Job<Result, Part = never> = Generator<Part | undefined, Result, void>
