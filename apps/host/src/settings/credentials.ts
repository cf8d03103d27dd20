import { createPrivateKey } from 'node:crypto'
import {
  type CredentialSettings,
  isSecureUrl,
  secretNamesOf,
  upstreamUrlsOf,
} from '@sandwire/operator-settings'
import { type Environment, read } from './input.ts'
import { readSecretText } from './secrets.ts'

/** What the credential gateway needs. */
export interface Credentials {
  /** Secrets and variables for control, by the names of their bindings. */
  readonly credentials: Readonly<Record<string, string>>
  /** URLs that control connects to for agents; empty: none is configured. */
  readonly upstreamUrls: readonly string[]
}

/** Secrets that need no settings. */
const KNOWN_SECRETS = ['ANTHROPIC_API_KEY', 'CLAUDE_CODE_OAUTH_TOKEN'] as const
const APP_KEY = 'GITHUB_APP_PRIVATE_KEY'
const APP_ID = 'GITHUB_APP_ID'
const BASE_URL = 'ANTHROPIC_BASE_URL'
const API_URL = 'API_BASE_URL'
const API_SECRET = 'INTERNAL_API_TOKEN'
const DEFAULT_BASE_URL = 'https://api.anthropic.com'

/** Converts a PEM private key to PKCS #8; undefined when it is none. GitHub issues keys in PKCS #1. */
function toPkcs8(pem: string): string | undefined {
  try {
    const key = createPrivateKey(pem)
    return key.asymmetricKeyType === 'rsa' ? String(key.export({ type: 'pkcs8', format: 'pem' })) : undefined
  } catch {
    // Not a private key, or encrypted.
    return undefined
  }
}

function readApp(
  env: Environment,
  readFile: (file: string) => string,
  problems: string[],
): Readonly<Record<string, string>> {
  const id = read(env, APP_ID)
  const { text, problem } = readSecretText(APP_KEY, env, readFile)
  if (problem !== undefined) problems.push(problem)
  if (id === undefined && text === undefined) return {}
  if (id === undefined || text === undefined) {
    if (problem === undefined)
      problems.push(`${APP_ID} and ${APP_KEY} (or ${APP_KEY}_FILE) work together only: set both`)
    return {}
  }
  if (!/^[A-Za-z0-9._-]{1,64}$/.test(id))
    problems.push(`${APP_ID} is "${id}": give the App's id or client id`)
  const key = toPkcs8(text)
  if (key === undefined)
    problems.push(`${APP_KEY} cannot be used: it is not an RSA private key in PEM format`)
  return { [APP_ID]: id, ...(key !== undefined && { [APP_KEY]: key }) }
}

/** The operator's API that stores messages of conversations. */
function readMessageApi(
  env: Environment,
  readFile: (file: string) => string,
  problems: string[],
): Readonly<Record<string, string>> {
  const url = read(env, API_URL)
  const { text, problem } = readSecretText(API_SECRET, env, readFile)
  if (problem !== undefined) problems.push(problem)
  if (url === undefined && text === undefined) return {}
  if (url === undefined || text === undefined) {
    if (problem === undefined)
      problems.push(`${API_URL} and ${API_SECRET} (or ${API_SECRET}_FILE) work together only: set both`)
    return {}
  }
  if (!isSecureUrl(url))
    problems.push(`${API_URL} is "${url}": give an https URL, or an http URL of this machine`)
  if (!/^[\x21-\x7e]{1,8192}$/.test(text))
    problems.push(`${API_SECRET} cannot be used: it has characters that are not allowed in a header`)
  return { [API_URL]: url, [API_SECRET]: text }
}

/** Reads the secrets of the credential gateway from variables, or from files named by `*_FILE` variables. */
export function validateCredentials(
  env: Environment,
  settings: CredentialSettings,
  readFile: (file: string) => string,
  problems: string[],
): Credentials {
  const credentials: Record<string, string> = {}
  for (const name of new Set([...KNOWN_SECRETS, ...secretNamesOf(settings)])) {
    const { text, problem } = readSecretText(name, env, readFile)
    if (problem !== undefined) problems.push(problem)
    if (text === undefined) continue
    if (/^[\x21-\x7e]{1,8192}$/.test(text)) credentials[name] = text
    else problems.push(`${name} cannot be used: it has characters that are not allowed in a header`)
  }
  Object.assign(credentials, readApp(env, readFile, problems))
  const baseUrl = read(env, BASE_URL)
  if (baseUrl !== undefined && !isSecureUrl(baseUrl))
    problems.push(`${BASE_URL} is "${baseUrl}": give an https URL, or an http URL of this machine`)
  const api = readMessageApi(env, readFile, problems)
  const apiUrls = api[API_URL] === undefined ? [] : [api[API_URL]]
  if (Object.keys(credentials).length === 0) return { credentials: api, upstreamUrls: apiUrls }
  if (baseUrl !== undefined) credentials[BASE_URL] = baseUrl
  return {
    credentials: { ...credentials, ...api },
    upstreamUrls: [baseUrl ?? DEFAULT_BASE_URL, ...upstreamUrlsOf(settings), ...apiUrls],
  }
}

/** Removes the secrets of agents from the environment, so that no child inherits them. */
export function removeCredentials(
  env: Record<string, string | undefined>,
  { credentials }: Pick<Credentials, 'credentials'>,
): void {
  for (const name of [...KNOWN_SECRETS, APP_KEY, API_SECRET, ...Object.keys(credentials)]) delete env[name]
}
