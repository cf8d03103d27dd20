import { decodeSessionKeys } from '@sandwire/internal-api'
import { type Environment, read } from './input.ts'

/** Secrets of the operator. */
export interface Secrets {
  /** Verifies HS256 service tokens. */
  readonly jwtSecret?: string
  /** A static API token. */
  readonly apiToken?: string
  /** Keys of session tokens; absent: the data folder's. */
  readonly sessionTokenSecret?: string
  /** Access key of an S3-compatible store. */
  readonly awsAccessKeyId?: string
  readonly awsSecretAccessKey?: string
  /** Token of the Sprites API. */
  readonly spritesApiToken?: string
}

/** Shorter secrets can be guessed, or are weaker than the hash they are used with. */
const MIN_CHARS = 32
/** More than any key needs. */
const MAX_CHARS = 8192
const RECIPE = 'create one with: openssl rand -hex 32'

interface Rule {
  readonly key: keyof Secrets
  readonly variable: string
  /** Describes the problem without revealing the secret. */
  readonly findProblem: (text: string) => string | undefined
}

function findLengthProblem(text: string): string | undefined {
  const length = new TextEncoder().encode(text).byteLength
  if (length < MIN_CHARS) return `it has ${length} characters, at least ${MIN_CHARS} are required; ${RECIPE}`
  return length > MAX_CHARS ? `it has ${length} characters, at most ${MAX_CHARS} are allowed` : undefined
}

function findBearerProblem(text: string): string | undefined {
  if (!/^[\x21-\x7e]+$/.test(text)) return `it has characters that are not allowed in a header; ${RECIPE}`
  // The format of a bearer token selects its verifier.
  if (text.split('.').length >= 3 || text.startsWith('swl_'))
    return `it has the format of another kind of token; ${RECIPE}`
  return findLengthProblem(text)
}

function findAccessKeyProblem(text: string): string | undefined {
  return /^[\x21-\x7e]{1,256}$/.test(text) ? undefined : 'it is not an access key'
}

function findHeaderProblem(text: string): string | undefined {
  return /^[\x21-\x7e]{1,4096}$/.test(text) ? undefined : 'it has characters that are not allowed in a header'
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
  { key: 'awsAccessKeyId', variable: 'AWS_ACCESS_KEY_ID', findProblem: findAccessKeyProblem },
  { key: 'awsSecretAccessKey', variable: 'AWS_SECRET_ACCESS_KEY', findProblem: findAccessKeyProblem },
  { key: 'spritesApiToken', variable: 'SPRITES_API_TOKEN', findProblem: findHeaderProblem },
]

/** Removes secrets from the environment, so that no child inherits them. They stay visible in `/proc/PID/environ`. */
export function removeSecrets(env: Record<string, string | undefined>): void {
  for (const { variable } of RULES) delete env[variable]
}

/** The text of a secret, from its variable or from the file that `*_FILE` names. */
export function readSecretText(
  variable: string,
  env: Environment,
  readFile: (file: string) => string,
): { readonly text?: string; readonly problem?: string } {
  const text = read(env, variable)
  const file = read(env, `${variable}_FILE`)
  if (text !== undefined && file !== undefined)
    return { problem: `${variable} and ${variable}_FILE are both set: unset one of them` }
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
 * Reads secrets from variables, or from files named by `*_FILE` variables; `readFile` throws the reason when other users can
 * read a file.
 */
export function validateSecrets(
  env: Environment,
  readFile: (file: string) => string,
  problems: string[],
): Secrets {
  const found: { -readonly [K in keyof Secrets]: Secrets[K] } = {}
  for (const rule of RULES) {
    const { text, problem: readProblem } = readSecretText(rule.variable, env, readFile)
    if (readProblem !== undefined) problems.push(readProblem)
    if (text === undefined) continue
    const problem = rule.findProblem(text)
    if (problem === undefined) found[rule.key] = text
    else problems.push(`${rule.variable} cannot be used: ${problem}`)
  }
  return found
}
