import { createStore, type Store } from '@sandwire/client'
import type { SearchEnd, SearchMatch, SearchQuery } from '../api/search.ts'
import { messageOf } from '../state/workbench.ts'
import { addMatch, type FileMatches } from './group-matches.ts'

/** Maximum number of matches that are kept and shown. */
const MAX_SHOWN = 2_000

/** The form's values. */
interface SearchForm {
  readonly q: string
  readonly glob: string
  readonly isRegex: boolean
  readonly isCaseSensitive: boolean
  readonly includesHiddenAndIgnored: boolean
}

export type Outcome =
  | { readonly kind: 'idle' }
  | { readonly kind: 'searching' }
  | { readonly kind: 'done'; readonly end: SearchEnd | undefined }
  | { readonly kind: 'failed'; readonly message: string }

export interface SearchResult {
  readonly groups: readonly FileMatches[]
  readonly outcome: Outcome
}

type SearchFiles = (query: SearchQuery, signal: AbortSignal) => AsyncIterable<SearchMatch | SearchEnd>

/** Runs a callback after a delay, unless the returned function is called first. */
type Debounce = (run: () => void) => () => void

function queryOf({ q, glob, isRegex, isCaseSensitive, includesHiddenAndIgnored }: SearchForm): SearchQuery {
  return {
    q,
    regex: isRegex,
    case: isCaseSensitive ? 'sensitive' : 'insensitive',
    glob: glob.split(/[\s,]+/).filter((text) => text !== ''),
    hidden: includesHiddenAndIgnored,
    ignored: includesHiddenAndIgnored,
  }
}

/** The search in one sandbox, shown or not. A change cancels the previous search. */
export class Search {
  readonly #search: SearchFiles
  readonly #debounce: Debounce
  readonly #form = createStore<SearchForm>({
    q: '',
    glob: '',
    isRegex: false,
    isCaseSensitive: false,
    includesHiddenAndIgnored: false,
  })
  readonly #result = createStore<SearchResult>({ groups: [], outcome: { kind: 'idle' } })
  #stop: () => void = () => undefined
  /** Scroll position of the results. */
  scrollPx = 0

  constructor(search: SearchFiles, debounce: Debounce) {
    this.#search = search
    this.#debounce = debounce
  }

  get form(): Store<SearchForm> {
    return this.#form
  }

  get result(): Store<SearchResult> {
    return this.#result
  }

  change(part: Partial<SearchForm>): void {
    this.#form.set({ ...this.#form.get(), ...part })
    this.#stop()
    const aborter = new AbortController()
    const cancel = this.#debounce(() => void this.#run(aborter.signal))
    this.#stop = () => {
      cancel()
      aborter.abort()
    }
  }

  /** Called when the panel is shown again: retries a failed search. */
  resume(): void {
    if (this.#result.get().outcome.kind === 'failed') this.change({})
  }

  async #run(signal: AbortSignal): Promise<void> {
    const query = queryOf(this.#form.get())
    this.scrollPx = 0
    if (query.q === '') return this.#result.set({ groups: [], outcome: { kind: 'idle' } })
    this.#result.set({ groups: [], outcome: { kind: 'searching' } })
    let groups: readonly FileMatches[] = []
    let end: SearchEnd | undefined
    let shown = 0
    try {
      for await (const event of this.#search(query, signal)) {
        if (signal.aborted) return undefined
        if (event.type === 'end') {
          end = event
          continue
        }
        groups = addMatch(groups, event)
        shown += 1
        // Updates often enough to show progress, rarely enough to stay cheap.
        if (shown < 20 || shown % 50 === 0) this.#result.set({ groups, outcome: { kind: 'searching' } })
        if (shown >= MAX_SHOWN) break
      }
      if (!signal.aborted) this.#result.set({ groups, outcome: { kind: 'done', end } })
    } catch (caught) {
      const message = messageOf(caught)
      if (!signal.aborted) this.#result.set({ groups, outcome: { kind: 'failed', message } })
    }
    return undefined
  }
}
