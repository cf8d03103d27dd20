import { SandwireError } from '@sandwire/protocol'
import { closeFd } from '../../processes/linux/libc.ts'
import { quotePath } from '../beneath/file-error.ts'
import type { Files } from '../files.ts'
import { pathIn } from '../beneath/path.ts'
import { CANNOT_ENTER, type RunningTool, type RunTool } from '../tool.ts'
import { type Match, MatchGroups } from './matches.ts'
import { AFTER_TEXT, decodeRgLine, type LineLimits, type RgEvent, RgLines } from './rg-output.ts'
import { searchArgv, type SearchRequest } from './search-request.ts'

/** Limits of one search. */
export interface SearchBudget {
  readonly timeMs: number
  /** Of the response. */
  readonly maxBytes: number
}

export const SEARCH_BUDGET: SearchBudget = { timeMs: 30_000, maxBytes: 32 * 1024 * 1024 }

/** Lines up to 1 MiB are parsed; longer ones are truncated without parsing. */
const LINE_LIMITS: LineLimits = { maxBytes: 1024 * 1024, keptBytes: 64 * 1024 }

/** The limit that truncated the result, if any. */
type Truncated = false | 'matches' | 'bytes' | 'time'

interface SearchDependencies {
  readonly files: Pick<Files, 'openFolder'>
  readonly runTool: RunTool
  /** Path of ripgrep, or its name on PATH. */
  readonly ripgrep: string
  readonly budget?: SearchBudget
  /** Aborted when the client disconnects. */
  readonly signal: AbortSignal
}

/**
 * Searches file contents and streams NDJSON: a `match` each, then one `end`, or an `error` when the search failed. Rejects when
 * ripgrep cannot be run or rejects the pattern. Canceling the stream ends ripgrep.
 */
export async function searchContent(
  request: SearchRequest,
  { files, runTool, ripgrep, budget = SEARCH_BUDGET, signal }: SearchDependencies,
): Promise<ReadableStream<Uint8Array>> {
  const stop = new AbortController()
  const tool = await start(request, {
    files,
    runTool,
    ripgrep,
    budget,
    signal: AbortSignal.any([signal, stop.signal]),
  })
  const answer = new SearchResponse(request, budget).read(tool)
  const release = async (): Promise<void> => {
    stop.abort()
    // Closes ripgrep's output; its exit status no longer matters.
    await answer.return(undefined).catch(() => undefined)
  }
  try {
    // Before the response starts, so that an invalid pattern is a 400.
    const first = await answer.next()
    // If the client disconnects before reading, the stream is not canceled.
    signal.addEventListener('abort', () => void release(), { once: true })
    if (signal.aborted) await release()
    return toStream(answer, first, release)
  } catch (error) {
    throw signal.aborted
      ? new SandwireError('link_lost', 'Cannot respond: the client has disconnected')
      : error
  }
}

/** Streams lines with backpressure. An error after the start of the response is its last line. */
function toStream(
  answer: AsyncGenerator<string, undefined>,
  first: IteratorResult<string, undefined>,
  release: () => Promise<void>,
): ReadableStream<Uint8Array> {
  let next: typeof first | undefined = first
  return new ReadableStream<Uint8Array>(
    {
      async pull(controller) {
        try {
          const result = await (next ?? answer.next())
          next = undefined
          if (result.done === true) return controller.close()
          controller.enqueue(Buffer.from(result.value))
        } catch (caught) {
          const { code, message } = SandwireError.from(caught)
          controller.enqueue(Buffer.from(`${JSON.stringify({ type: 'error', error: { code, message } })}\n`))
          controller.close()
        }
      },
      cancel: release,
    },
    { highWaterMark: 0 },
  )
}

async function start(
  request: SearchRequest,
  { files, runTool, ripgrep, budget, signal }: SearchDependencies & { readonly budget: SearchBudget },
): Promise<RunningTool> {
  const folder = await files.openFolder(request.path)
  try {
    return await runTool({ argv: searchArgv(ripgrep, request), folder, signal, timeMs: budget.timeMs })
  } catch (error) {
    if (!(error instanceof SandwireError) || error.code !== 'command_not_found') throw error
    throw new SandwireError('command_not_found', 'Cannot search: ripgrep is not installed in the sandbox', {
      cause: error,
    })
  } finally {
    closeFd(folder)
  }
}

/** Builds the response of one search. */
class SearchResponse {
  readonly #request: SearchRequest
  readonly #maxBytes: number
  readonly #groups: MatchGroups
  #matches = 0
  #files = 0
  #lastPath: string | undefined
  #bytes = 0
  #truncated: Truncated = false
  /** Ripgrep has finished. */
  #isComplete = false

  constructor(request: SearchRequest, { maxBytes }: SearchBudget) {
    this.#request = request
    this.#maxBytes = maxBytes
    this.#groups = new MatchGroups(request.context)
  }

  /** NDJSON lines in the chunks that ripgrep wrote. Ending early ends ripgrep. */
  async *read(tool: RunningTool): AsyncGenerator<string, undefined> {
    const lines = new RgLines(LINE_LIMITS, AFTER_TEXT)
    for await (const chunk of tool.stdout) {
      let text = ''
      for (const line of lines.push(chunk)) text += this.#format(decodeRgLine(line))
      if (text !== '') yield text
      if (this.#truncated !== false) break
    }
    yield await this.#finish(tool)
  }

  #format(event: RgEvent | undefined): string {
    if (event === undefined || this.#truncated !== false) return ''
    if (event.kind === 'summary') this.#isComplete = true
    const match = this.#groups.push(event)
    return match === undefined ? '' : this.#add(match)
  }

  #add(match: Match): string {
    const line = writeMatch(match, this.#request.path)
    const bytes = Buffer.byteLength(line)
    if (this.#matches >= this.#request.limit) this.#truncated = 'matches'
    else if (this.#bytes + bytes > this.#maxBytes) this.#truncated = 'bytes'
    if (this.#truncated !== false) return ''
    this.#matches += 1
    this.#bytes += bytes
    if (match.path !== this.#lastPath) this.#files += 1
    this.#lastPath = match.path
    return line
  }

  async #finish(tool: RunningTool): Promise<string> {
    if (this.#truncated === false && !this.#isComplete) {
      const { isLate, code } = await tool.exited
      if (code === CANNOT_ENTER) throw shut(this.#request.path)
      if (!isLate) throw this.#matches === 0 ? toParameterError(await tool.stderr) : killedError()
      const last = this.#format({ kind: 'file-end' })
      this.#truncated = 'time'
      return last + this.#end()
    }
    return this.#end()
  }

  #end(): string {
    const end = { type: 'end', matches: this.#matches, files: this.#files, truncated: this.#truncated }
    return `${JSON.stringify(end)}\n`
  }
}

function shut(path: string): SandwireError {
  return new SandwireError('file_refused', `Cannot search ${quotePath(path)}: permission denied`)
}

/** Ripgrep was killed, for example for lack of memory. */
function killedError(): SandwireError {
  return new SandwireError('sandbox_failed', 'Cannot finish the search: ripgrep was killed')
}

/**
 * Ripgrep reports errors in the pattern or a glob on stderr only. The text is shown to the user; no decision depends on it but
 * which parameter is named.
 */
function toParameterError(stderr: string): SandwireError {
  if (stderr === '') return killedError()
  const name = stderr.includes('parsing glob') ? 'glob' : 'q'
  const reason = stderr.includes('"\\n"')
    ? 'a pattern cannot span lines'
    : (/^error: (.*)$/m.exec(stderr)?.[1] ?? stderr.replace(/^rg: /, '').split('\n', 1)[0] ?? '')
  const shown = reason.replace(/\p{C}/gu, '').slice(0, 200)
  return new SandwireError('bad_request', `Cannot use parameter "${name}": ${shown}`)
}

function writeMatch({ path, isCut, ...match }: Match, folder: string): string {
  const { line, text, ranges, before, after } = match
  const found = { type: 'match', path: pathIn(folder, path), line, text, ranges, before, after }
  return `${JSON.stringify(isCut ? { ...found, cut: true } : found)}\n`
}
