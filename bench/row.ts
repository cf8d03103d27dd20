import type { Scratch } from './scratch.ts'

/** Sandwire, another program, or a control without either. */
export type Side = 'ours' | 'peer' | 'control'

/** A program or control in a row: opened once, measured once per round. */
export interface Competitor extends AsyncDisposable {
  readonly name: string
  readonly side: Side
  /** Returns a figure in the unit of the row. Rejects when a byte is missing. */
  readonly measure: () => Promise<number>
}

/** A competitor that cannot run on this machine, and the reason. */
export interface Absent {
  readonly name: string
  readonly absent: string
}

/** Figures of a row by competitor. */
export type Figures = ReadonlyMap<string, readonly number[]>

export interface Target {
  /** Text in the table: `≤ websocketd`. */
  readonly text: string
  /** Whether the medians meet it; `undefined` when a competitor is absent. */
  readonly isMet: (medianOf: (name: string) => number | undefined) => boolean | undefined
}

export interface RowOptions {
  readonly scratch: Scratch
}

/** One row of the table. */
export interface Row {
  readonly id: string
  readonly title: string
  readonly unit: string
  readonly digits?: number
  /** What is measured. */
  readonly about: string
  readonly targets: readonly Target[]
  /** Fixed number of rounds: a count of a thousand runs needs no repetition. */
  readonly rounds?: number
  readonly open: (options: RowOptions) => Promise<readonly (Competitor | Absent)[]>
}

export function isAbsent(each: Competitor | Absent): each is Absent {
  return 'absent' in each
}

/** Target: our median is at most another one times a factor. */
export function atMost(ours: string, theirs: string, factor = 1): Target {
  return {
    text: `${ours} ≤ ${factor === 1 ? '' : `${factor} × `}${theirs}`,
    isMet: (medianOf) => {
      const [own, other] = [medianOf(ours), medianOf(theirs)]
      return own === undefined || other === undefined ? undefined : own <= other * factor
    },
  }
}

/** Target: our median is at least another one times a factor. */
export function atLeast(ours: string, theirs: string, factor = 1): Target {
  return {
    text: `${ours} ≥ ${factor === 1 ? '' : `${factor} × `}${theirs}`,
    isMet: (medianOf) => {
      const [own, other] = [medianOf(ours), medianOf(theirs)]
      return own === undefined || other === undefined ? undefined : own >= other * factor
    },
  }
}

/** Target: our median is below a fixed limit. */
export function below(ours: string, limit: number, unit: string): Target {
  return {
    text: `${ours} ≤ ${limit} ${unit}`.trim(),
    isMet: (medianOf) => {
      const own = medianOf(ours)
      return own === undefined ? undefined : own <= limit
    },
  }
}
