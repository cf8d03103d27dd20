import { describeLine, type MatchText } from './match-text.ts'
import type { FoundLine, RgEvent } from './rg-event.ts'

/** A line that was found, with what is around it. */
export interface Match extends MatchText {
  readonly path: string
  readonly line: number
  /** Lines before and after it, up to the next match: a line that was found stands for itself. */
  readonly before: readonly string[]
  readonly after: readonly string[]
}

/** Gives every match the lines around it, which ripgrep tells on their own: one may be around two matches. */
export class MatchGroups {
  readonly #context: number
  /** The last lines that were no match, at most `context`. */
  #recent: FoundLine[] = []
  #open: { readonly match: Match; readonly after: string[] } | undefined

  constructor(context: number) {
    this.#context = context
  }

  /** The match that an event completes, if it does. */
  push(event: RgEvent): Match | undefined {
    switch (event.kind) {
      case 'context':
        return this.#pushContext(event)
      case 'match':
        return this.#pushMatch(event)
      case 'file-end':
      case 'summary':
        this.#recent = []
        return this.#take()
    }
  }

  #pushContext(line: FoundLine): Match | undefined {
    this.#recent = [...this.#recent, line].slice(-this.#context)
    if (this.#open === undefined || line.line - this.#open.match.line > this.#context) return this.#take()
    this.#open.after.push(describeLine(line).text)
    return this.#open.after.length >= this.#context ? this.#take() : undefined
  }

  #pushMatch(line: FoundLine): Match | undefined {
    const before = this.#recent
      .filter((near) => near.line < line.line && line.line - near.line <= this.#context)
      .map((near) => describeLine(near).text)
    const after: string[] = []
    const done = this.#take()
    this.#recent = []
    this.#open = { match: { path: line.path, line: line.line, ...describeLine(line), before, after }, after }
    // Without lines around it there is nothing to wait for, and none before it that still does.
    return this.#context === 0 ? this.#take() : done
  }

  #take(): Match | undefined {
    const match = this.#open?.match
    this.#open = undefined
    return match
  }
}
