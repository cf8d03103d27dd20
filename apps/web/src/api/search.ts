import { request, requestJson } from './request.ts'
import { workspaceUrl } from './workspace.ts'

export interface SearchQuery {
  readonly q: string
  readonly regex: boolean
  readonly case: 'sensitive' | 'insensitive' | 'smart'
  readonly glob: readonly string[]
  readonly hidden: boolean
  readonly ignored: boolean
}

export interface SearchMatch {
  readonly type: 'match'
  readonly path: string
  readonly line: number
  readonly text: string
  /** Start and end, in UTF-16 units of `text`. */
  readonly ranges: readonly (readonly [number, number])[]
}

export interface SearchEnd {
  readonly type: 'end'
  readonly matches: number
  readonly files: number
  readonly truncated: false | 'matches' | 'bytes' | 'time'
}

/** Parses a byte stream of JSON lines. */
export async function* readLines(body: ReadableStream<Uint8Array>): AsyncGenerator<unknown> {
  const decoder = new TextDecoder()
  const reader = body.getReader()
  let rest = ''
  try {
    for (;;) {
      const { done, value } = await reader.read()
      rest += decoder.decode(value, { stream: !done })
      const lines = rest.split('\n')
      rest = lines.pop() ?? ''
      for (const line of lines) if (line !== '') yield JSON.parse(line) as unknown
      if (done) return
    }
  } finally {
    await reader.cancel().catch(() => undefined)
  }
}

/** Searches file contents, yielding matches as they arrive. Leaving the loop cancels the search. */
export async function* searchFiles(
  sandbox: string,
  { q, regex, case: letters, glob, hidden, ignored }: SearchQuery,
  signal: AbortSignal,
): AsyncGenerator<SearchMatch | SearchEnd> {
  const query = { q, regex, case: letters, glob, hidden, ignored, path: '.' }
  const response = await request(workspaceUrl(sandbox, 'search', query), { signal })
  if (response.body === null) return
  for await (const line of readLines(response.body)) yield line as SearchMatch | SearchEnd
}

/** Finds files by a part of their name. */
export async function findFiles(
  sandbox: string,
  q: string,
  signal: AbortSignal,
): Promise<{
  readonly results: readonly { readonly path: string; readonly kind: string }[]
  readonly truncated: boolean
}> {
  return requestJson(workspaceUrl(sandbox, 'find', { q, path: '.', limit: 100 }), { signal })
}
