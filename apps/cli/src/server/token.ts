import { readFileSync } from 'node:fs'
import { readPrivateFile } from './known-servers.ts'

/** Sources of a token. A token file given by option wins, then `token`, then `environment`. */
export interface TokenSources {
  readonly token: string | undefined
  readonly tokenFile: string | undefined
  readonly environment: string | undefined
  /** Token file of the server, if it is one of this machine. */
  readonly knownFile?: string | undefined
}

export type TokenResult =
  | { readonly isOk: true; readonly token: string | undefined }
  | { readonly isOk: false; readonly message: string; readonly hint: string }

/** A token and the file it is from. */
interface FoundToken {
  readonly token: string | undefined
  readonly file: string | undefined
}

function describeReadError(error: unknown): string {
  const code = error instanceof Error && 'code' in error ? error.code : undefined
  if (code === 'ENOENT') return 'no such file'
  if (code === 'EACCES') return 'permission denied'
  if (code === 'EISDIR') return 'it is a folder'
  return 'it cannot be read'
}

function unreadable(file: string, reason: string, hint: string): TokenResult {
  return { isOk: false, message: `Cannot read the token file "${file}": ${reason}`, hint }
}

function check({ token, file }: FoundToken): TokenResult {
  if (token === undefined || /^[\x21-\x7e]+$/.test(token)) return { isOk: true, token }
  const shown = file === undefined ? 'token' : `token in "${file}"`
  return {
    isOk: false,
    message: `Cannot use the ${shown}: it is empty, or not printable ASCII`,
    hint: 'check the token file, --token or SBX_TOKEN',
  }
}

/** Reads a file given on the command line, which may be a pipe. */
function readGivenFile(file: string): TokenResult {
  try {
    return check({ token: readFileSync(file, 'utf8').trim(), file })
  } catch (error) {
    return unreadable(file, describeReadError(error), 'give the file with your token: --token-file FILE')
  }
}

/** Reads the registered file of a server, which other users must not be able to write. */
function readKnownFile(file: string): TokenResult {
  const found = readPrivateFile(file)
  if (found.kind === 'read') return check({ token: found.text.trim(), file })
  const reason = found.kind === 'absent' ? 'no such file' : found.reason
  return unreadable(file, reason, 'restart the server: npm start')
}

/** Reads the token; undefined when there is none. */
export function readToken({ token, tokenFile, environment, knownFile }: TokenSources): TokenResult {
  if (tokenFile !== undefined) return readGivenFile(tokenFile)
  const given = token ?? (environment === '' ? undefined : environment)
  if (given === undefined && knownFile !== undefined) return readKnownFile(knownFile)
  return check({ token: given, file: undefined })
}
