import { readFileSync } from 'node:fs'
import { readPrivateFile } from './known-servers.ts'

/** Where a token comes from, in the order of preference. */
export interface TokenSources {
  readonly token: string | undefined
  readonly tokenFile: string | undefined
  readonly environment: string | undefined
  /** Token file of the server that is asked, if that is one of this machine. */
  readonly knownFile?: string | undefined
}

export type TokenReading =
  | { readonly isOk: true; readonly token: string | undefined }
  | { readonly isOk: false; readonly message: string; readonly hint: string }

/** What was found, and where. */
interface Found {
  readonly token: string | undefined
  readonly file: string | undefined
}

function why(error: unknown): string {
  const code = error instanceof Error && 'code' in error ? error.code : undefined
  if (code === 'ENOENT') return 'no such file'
  if (code === 'EACCES') return 'permission denied'
  if (code === 'EISDIR') return 'it is a folder'
  return 'it cannot be read'
}

function unreadable(file: string, reason: string, hint: string): TokenReading {
  return { isOk: false, message: `Cannot read the token file "${file}": ${reason}`, hint }
}

function check({ token, file }: Found): TokenReading {
  if (token === undefined || /^[\x21-\x7e]+$/.test(token)) return { isOk: true, token }
  const place = file === undefined ? 'token' : `token in "${file}"`
  return {
    isOk: false,
    message: `Cannot use the ${place}: it is empty or not one printable word`,
    hint: 'check what the token file, --token or SBX_TOKEN holds',
  }
}

/** A file that was given on the command line is the user's choice, a pipe for example. */
function readGiven(file: string): TokenReading {
  try {
    return check({ token: readFileSync(file, 'utf8').trim(), file })
  } catch (error) {
    return unreadable(file, why(error), 'give the file that holds your token with --token-file FILE')
  }
}

/** A file that was found must not be one that others put there. */
function readKnown(file: string): TokenReading {
  const found = readPrivateFile(file)
  if (found.is === 'read') return check({ token: found.text.trim(), file })
  const reason = found.is === 'absent' ? 'no such file' : found.why
  return unreadable(file, reason, 'start the server again: npm start')
}

/** Reads the token; undefined when there is none. */
export function readToken({ token, tokenFile, environment, knownFile }: TokenSources): TokenReading {
  if (tokenFile !== undefined) return readGiven(tokenFile)
  const given = token ?? (environment === '' ? undefined : environment)
  if (given === undefined && knownFile !== undefined) return readKnown(knownFile)
  return check({ token: given, file: undefined })
}
