import { decodeSessionKeys } from '@sandwire/internal-api'
import { type Environment, read } from './input.ts'

/** What only this machine and those who are told know. */
export interface Secrets {
  /** Verifies HS256 service tokens. */
  readonly jwtSecret?: string
  /** The operator's one token for the API. */
  readonly apiToken?: string
  /** Keys of session tokens; absent: one that was made for the data folder. */
  readonly sessionTokenSecret?: string
}

/** Shorter ones can be guessed, or are weaker than the hash they are used with. */
const MIN_CHARS = 32
/** More than any key needs. */
const MAX_CHARS = 8192
const RECIPE = 'make one with: openssl rand -hex 32'

interface Rule {
  readonly key: keyof Secrets
  readonly variable: string
  /** What is wrong with one, without a character of it. */
  readonly findProblem: (text: string) => string | undefined
}

function findLengthProblem(text: string): string | undefined {
  const length = new TextEncoder().encode(text).byteLength
  if (length < MIN_CHARS) return `it has ${length} characters and needs ${MIN_CHARS} or more; ${RECIPE}`
  return length > MAX_CHARS ? `it has ${length} characters and may have ${MAX_CHARS}` : undefined
}

function findBearerProblem(text: string): string | undefined {
  if (!/^[\x21-\x7e]+$/.test(text)) return `it has characters that no header can carry; ${RECIPE}`
  // The form of a bearer decides who examines it.
  if (text.split('.').length >= 3 || text.startsWith('swl_'))
    return `it looks like another kind of token; ${RECIPE}`
  return findLengthProblem(text)
}

function findSessionKeysProblem(text: string): string | undefined {
  try {
    decodeSessionKeys(text)
    return undefined
  } catch (error) {
    return error instanceof Error ? error.message.replace(/^.*?: /, '') : 'it is not understood'
  }
}

const RULES: readonly Rule[] = [
  { key: 'jwtSecret', variable: 'JWT_SECRET', findProblem: findLengthProblem },
  { key: 'apiToken', variable: 'API_TOKEN', findProblem: findBearerProblem },
  { key: 'sessionTokenSecret', variable: 'SESSION_TOKEN_SECRET', findProblem: findSessionKeysProblem },
]

/** Takes secrets out of an environment, so that no child is given one; the kernel still shows what this process was started with. */
export function removeSecrets(env: Record<string, string | undefined>): void {
  for (const { variable } of RULES) delete env[variable]
}

function findText(
  { variable }: Rule,
  env: Environment,
  readFile: (file: string) => string,
): { readonly text?: string; readonly problem?: string } {
  const text = read(env, variable)
  const file = read(env, `${variable}_FILE`)
  if (text !== undefined && file !== undefined)
    return { problem: `${variable} and ${variable}_FILE are both set: leave one of them out` }
  if (file === undefined) return text === undefined ? {} : { text }
  try {
    return { text: readFile(file).trim() }
  } catch (error) {
    return {
      problem: `${variable}_FILE is "${file}": ${error instanceof Error ? error.message : 'not readable'}`,
    }
  }
}

/**
 * Collects the secrets from variables, or from the files that variables ending in `_FILE` name; `readFile` throws with the reason
 * when others can open a file.
 */
export function validateSecrets(
  env: Environment,
  readFile: (file: string) => string,
  problems: string[],
): Secrets {
  const found: { -readonly [K in keyof Secrets]: Secrets[K] } = {}
  for (const rule of RULES) {
    const { text, problem: readProblem } = findText(rule, env, readFile)
    if (readProblem !== undefined) problems.push(readProblem)
    if (text === undefined) continue
    const problem = rule.findProblem(text)
    if (problem === undefined) found[rule.key] = text
    else problems.push(`${rule.variable} cannot be used: ${problem}`)
  }
  return found
}
