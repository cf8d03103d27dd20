import { SandwireError } from '@sandwire/protocol'
import { closeFd } from '../../processes/linux/libc.ts'
import { quotePath } from '../beneath/file-error.ts'
import type { Files } from '../files.ts'
import { pathIn } from '../beneath/path.ts'
import { CANNOT_ENTER, type RunningTool, type RunTool } from '../tool.ts'
import { type Match, MatchGroups } from './matches.ts'
import { AFTER_TEXT, decodeRgLine, type LineLimits, type RgEvent, RgLines } from './rg-output.ts'
import { searchArgv, type SearchRequest } from './search-request.ts'

/** What one search may take. */
export interface SearchBudget {
  readonly timeMs: number
  /** Of the answer. */
  readonly maxBytes: number
}

export const SEARCH_BUDGET: SearchBudget = { timeMs: 30_000, maxBytes: 32 * 1024 * 1024 }

/** A line of a million characters is still parsed as it is; longer ones are cut unread. */
const LINE_LIMITS: LineLimits = { maxBytes: 1024 * 1024, keptBytes: 64 * 1024 }

/** What was left out: nothing, or what was used up first. */
type Truncated = false | 'matches' | 'bytes' | 'time'

interface SearchDependencies {
  readonly files: Pick<Files, 'openFolder'>
  readonly runTool: RunTool
  /** Path of ripgrep, or its name on PATH. */
  readonly ripgrep: string
  readonly budget?: SearchBudget
  /** The client has gone. */
  readonly signal: AbortSignal
}

/**
 * Searches the contents of files and gives lines of JSON as they are found: a `match` each, then one `end`, or an `error` when
 * the search broke off. Rejects when ripgrep cannot be run or does not understand what is looked for. Canceling ends it.
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
  const answer = new Answer(request, budget).read(tool)
  const release = async (): Promise<void> => {
    stop.abort()
    // Lets go of ripgrep's output; what it says of its end is nobody's.
    await answer.return(undefined).catch(() => undefined)
  }
  try {
    // Before anything is answered: a pattern that is not understood is the caller's fault.
    const first = await answer.next()
    // A client may go before it reads anything, and then nobody cancels.
    signal.addEventListener('abort', () => void release(), { once: true })
    if (signal.aborted) await release()
    return toStream(answer, first, release)
  } catch (error) {
    throw signal.aborted ? new SandwireError('link_lost', 'Cannot answer: the client has gone') : error
  }
}

/** Lines as bytes, asked for one by one. An error that comes when the answer has begun is its last line. */
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

/** The answer to one search, as far as it has come. */
class Answer {
  readonly #request: SearchRequest
  readonly #maxBytes: number
  readonly #groups: MatchGroups
  #matches = 0
  #files = 0
  #lastPath: string | undefined
  #bytes = 0
  #truncated: Truncated = false
  /** Ripgrep has come to its end. */
  #isComplete = false

  constructor(request: SearchRequest, { maxBytes }: SearchBudget) {
    this.#request = request
    this.#maxBytes = maxBytes
    this.#groups = new MatchGroups(request.context)
  }

  /** Lines of JSON, as many at a time as ripgrep gave. Leaving early ends ripgrep. */
  async *read(tool: RunningTool): AsyncGenerator<string, undefined> {
    const lines = new RgLines(LINE_LIMITS, AFTER_TEXT)
    for await (const chunk of tool.stdout) {
      let text = ''
      for (const line of lines.push(chunk)) text += this.#tell(decodeRgLine(line))
      if (text !== '') yield text
      if (this.#truncated !== false) break
    }
    yield await this.#finish(tool)
  }

  /** What an event adds to the answer. */
  #tell(event: RgEvent | undefined): string {
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
      if (!isLate) throw this.#matches === 0 ? refusal(await tool.stderr) : broken()
      const last = this.#tell({ kind: 'file-end' })
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

/** Somebody ended it, or the memory did not suffice. */
function broken(): SandwireError {
  return new SandwireError('sandbox_failed', 'Cannot finish the search: ripgrep was ended')
}

/** Ripgrep names what it does not understand: the pattern, or a glob. */
function refusal(said: string): SandwireError {
  if (said === '') return broken()
  const name = said.includes('parsing glob') ? 'glob' : 'q'
  const reason = said.includes('"\\n"')
    ? 'a pattern is within one line'
    : (/^error: (.*)$/m.exec(said)?.[1] ?? said.replace(/^rg: /, '').split('\n', 1)[0] ?? '')
  const shown = reason.replace(/\p{C}/gu, '').slice(0, 200)
  return new SandwireError('bad_request', `Cannot use parameter "${name}": ${shown}`)
}

function writeMatch({ path, isCut, ...match }: Match, folder: string): string {
  const { line, text, ranges, before, after } = match
  const found = { type: 'match', path: pathIn(folder, path), line, text, ranges, before, after }
  return `${JSON.stringify(isCut ? { ...found, cut: true } : found)}\n`
}
