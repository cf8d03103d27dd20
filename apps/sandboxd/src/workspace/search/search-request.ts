import { SandwireError } from '@sandwire/protocol'
import type { Query } from '../routes/parameters.ts'

/** A content search. */
export interface SearchRequest {
  readonly pattern: string
  readonly path: string
  readonly isRegex: boolean
  readonly caseRule: 'sensitive' | 'insensitive' | 'smart'
  readonly globs: readonly string[]
  /** Lines before and after each match. */
  readonly context: number
  /** Maximum number of matching lines. */
  readonly limit: number
  readonly hasHidden: boolean
  readonly hasIgnored: boolean
}

/** Longer than any pattern that a user types, and short enough to compile quickly. */
const MAX_PATTERN_BYTES = 4_096
const MAX_GLOB_BYTES = 1_024
const MAX_GLOBS = 32
const MAX_CONTEXT = 20
const DEFAULT_LIMIT = 1_000
const MAX_LIMIT = 10_000

const CASE_FLAGS: Readonly<Record<SearchRequest['caseRule'], string>> = {
  sensitive: '--case-sensitive',
  insensitive: '--ignore-case',
  smart: '--smart-case',
}

/** Parses the query parameters; throws `bad_request`. */
export function parseSearch(query: Query): SearchRequest {
  const globs = query.all('glob')
  if (globs.length > MAX_GLOBS) throw bad('glob', `more than ${MAX_GLOBS}`)
  return {
    pattern: checkWord('q', query.text('q'), MAX_PATTERN_BYTES),
    path: query.text('path', '.'),
    isRegex: query.flag('regex'),
    caseRule: query.choice('case', ['sensitive', 'insensitive', 'smart'], 'smart'),
    globs: globs.map((glob) => checkWord('glob', glob, MAX_GLOB_BYTES)),
    context: query.integer('context', { min: 0, max: MAX_CONTEXT }) ?? 0,
    limit: query.integer('limit', { min: 1, max: MAX_LIMIT }) ?? DEFAULT_LIMIT,
    hasHidden: query.flag('hidden'),
    hasIgnored: query.flag('ignored'),
  }
}

/**
 * The command line of ripgrep. User input cannot become an option: the pattern follows `-e`, a glob follows `--glob=`, and the
 * folder is the working directory. No configuration is read, no link followed, and the regex engine has no backtracking.
 */
export function searchArgv(ripgrep: string, request: SearchRequest): [string, ...string[]] {
  return [
    ripgrep,
    '--no-config',
    '--no-follow',
    '--no-messages',
    '--json',
    '--line-number',
    '--engine=default',
    request.isRegex ? '--no-fixed-strings' : '--fixed-strings',
    CASE_FLAGS[request.caseRule],
    // One more than reported, so that a truncated file is noticed without reading all of it.
    `--max-count=${request.limit + 1}`,
    `--context=${request.context}`,
    ...(request.hasHidden ? ['--hidden'] : []),
    ...(request.hasIgnored ? ['--no-ignore'] : []),
    ...request.globs.map((glob) => `--glob=${glob}`),
    '-e',
    request.pattern,
    '--',
    './',
  ]
}

/** A command-line argument: UTF-8 without NUL. */
function checkWord(name: string, text: string, maxBytes: number): string {
  if (text === '') throw bad(name, 'empty')
  if (!text.isWellFormed()) throw bad(name, 'not UTF-8')
  if (text.includes('\0')) throw bad(name, 'contains a NUL byte')
  if (Buffer.byteLength(text) > maxBytes) throw bad(name, `more than ${maxBytes} bytes`)
  return text
}

function bad(name: string, why: string): SandwireError {
  return new SandwireError('bad_request', `Cannot use parameter "${name}": ${why}`)
}
