import type { Scratch } from './scratch.ts'

/** Whose figure it is: ours, another program's, or what the machine does without either. */
export type Side = 'ours' | 'peer' | 'control'

/** One thing that a row measures, opened once and measured once per round. */
export interface Contestant extends AsyncDisposable {
  readonly name: string
  readonly side: Side
  /** One figure in the row's unit. Rejects when a byte is missing. */
  readonly measure: () => Promise<number>
}

/** Something that cannot run on this machine, and why. */
export interface Absent {
  readonly name: string
  readonly absent: string
}

/** All figures of a row so far, by contestant. */
export type Figures = ReadonlyMap<string, readonly number[]>

export interface Target {
  /** As the table shows it: `≤ websocketd`. */
  readonly text: string
  /** Whether the medians meet it; `undefined` when what it compares with is absent. */
  readonly isMet: (medianOf: (name: string) => number | undefined) => boolean | undefined
}

export interface RowOptions {
  readonly scratch: Scratch
}

/** One line of the comparison. */
export interface Row {
  readonly id: string
  readonly title: string
  readonly unit: string
  readonly digits?: number
  /** What is measured, in a sentence. */
  readonly about: string
  readonly targets: readonly Target[]
  /** Rounds when that is not the runner's choice: a count of a thousand needs no repetition. */
  readonly rounds?: number
  readonly open: (options: RowOptions) => Promise<readonly (Contestant | Absent)[]>
}

export function isAbsent(each: Contestant | Absent): each is Absent {
  return 'absent' in each
}

/** Our median is not above another one, times a factor. */
export function atMost(ours: string, theirs: string, factor = 1): Target {
  return {
    text: `${ours} ≤ ${factor === 1 ? '' : `${factor} × `}${theirs}`,
    isMet: (medianOf) => {
      const [own, other] = [medianOf(ours), medianOf(theirs)]
      return own === undefined || other === undefined ? undefined : own <= other * factor
    },
  }
}

/** Our median is not below another one, times a factor. */
export function atLeast(ours: string, theirs: string, factor = 1): Target {
  return {
    text: `${ours} ≥ ${factor === 1 ? '' : `${factor} × `}${theirs}`,
    isMet: (medianOf) => {
      const [own, other] = [medianOf(ours), medianOf(theirs)]
      return own === undefined || other === undefined ? undefined : own >= other * factor
    },
  }
}

/** A bound that does not depend on others. */
export function below(ours: string, limit: number, unit: string): Target {
  return {
    text: `${ours} ≤ ${limit} ${unit}`.trim(),
    isMet: (medianOf) => {
      const own = medianOf(ours)
      return own === undefined ? undefined : own <= limit
    },
  }
}
