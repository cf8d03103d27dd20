import { pathFromBytes } from '@sandwire/protocol'
import { NulTokens } from './nul-tokens.ts'

/** One file of a diff. */
export interface DiffFile {
  readonly path: string
  /** Where it was renamed or copied from. */
  from?: string
  /** As git abbreviates it: A, C, D, M, R, T or U. */
  readonly status: string
  /** Lines; none are counted in a binary file. */
  added: number
  removed: number
  isBinary: boolean
}

type State =
  | { readonly at: 'start' }
  /** Paths of a raw record are to come. */
  | { readonly at: 'raw'; readonly status: string; readonly from?: string }
  /** Both paths of a renamed file are to come. */
  | { readonly at: 'counted'; readonly counts: Counts; readonly from?: string }
  | { readonly at: 'patch' }

interface Counts {
  readonly added: number
  readonly removed: number
  readonly isBinary: boolean
}

const COLON = 0x3a

/** Reads `git diff -z --raw --numstat --patch`: files, their counts, an empty token, and then text to the end. */
export class DiffParser {
  /** By path, in git's order. */
  readonly files = new Map<string, DiffFile>()
  readonly #tokens = new NulTokens()
  #state: State = { at: 'start' }

  /** Takes bytes, and gives those of them that are text of the diff. */
  push(chunk: Uint8Array): Uint8Array {
    if (this.#state.at === 'patch') return chunk
    this.#tokens.push(chunk)
    for (let token = this.#tokens.next(); token !== undefined; token = this.#tokens.next()) {
      this.#state = this.#take(token)
      if (this.#state.at === 'patch') return this.#tokens.rest()
    }
    return new Uint8Array()
  }

  #take(token: Uint8Array): State {
    const state = this.#state
    switch (state.at) {
      case 'start':
        return this.#begin(token)
      case 'raw':
        if (/^[RC]/.test(state.status) && state.from === undefined)
          return { ...state, from: pathFromBytes(token) }
        this.#addFile(pathFromBytes(token), state)
        return { at: 'start' }
      case 'counted':
        if (state.from === undefined) return { ...state, from: pathFromBytes(token) }
        this.#count(pathFromBytes(token), state.counts)
        return { at: 'start' }
      case 'patch':
        return state
    }
  }

  #begin(token: Uint8Array): State {
    if (token.length === 0) return { at: 'patch' }
    const text = pathFromBytes(token)
    if (token[0] === COLON) return { at: 'raw', status: text.slice(text.lastIndexOf(' ') + 1) }
    const [, added = '', removed = '', path = ''] = /^([0-9]+|-)\t([0-9]+|-)\t(.*)$/s.exec(text) ?? []
    const counts = { added: Number(added) || 0, removed: Number(removed) || 0, isBinary: added === '-' }
    if (path === '') return { at: 'counted', counts }
    this.#count(path, counts)
    return { at: 'start' }
  }

  #addFile(path: string, { status, from }: { readonly status: string; readonly from?: string }): void {
    // A conflict comes first, and then once more as what became of our side.
    if (this.files.has(path)) return
    const counts = { added: 0, removed: 0, isBinary: false }
    const origin = from === undefined ? {} : { from }
    this.files.set(path, { path, ...origin, status: status.slice(0, 1), ...counts })
  }

  #count(path: string, counts: Counts): void {
    const file = this.files.get(path)
    if (file !== undefined) Object.assign(file, counts)
  }
}
