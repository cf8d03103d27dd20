import { readFileSync } from 'node:fs'

/** Where a token comes from, in the order of preference. */
export interface TokenSources {
  readonly token: string | undefined
  readonly tokenFile: string | undefined
  readonly environment: string | undefined
}

export type TokenReading =
  | { readonly isOk: true; readonly token: string | undefined }
  | { readonly isOk: false; readonly message: string; readonly hint: string }

function why(error: unknown): string {
  const code = error instanceof Error && 'code' in error ? error.code : undefined
  if (code === 'ENOENT') return 'no such file'
  if (code === 'EACCES') return 'permission denied'
  if (code === 'EISDIR') return 'it is a folder'
  return 'it cannot be read'
}

/** Reads the token; undefined when there is none. */
export function readToken({ token, tokenFile, environment }: TokenSources): TokenReading {
  let found = token ?? (environment === '' ? undefined : environment)
  if (tokenFile !== undefined) {
    try {
      found = readFileSync(tokenFile, 'utf8').trim()
    } catch (error) {
      const message = `Cannot read the token file "${tokenFile}": ${why(error)}`
      return { isOk: false, message, hint: 'give the file that holds your token with --token-file FILE' }
    }
  }
  if (found === undefined || /^[\x21-\x7e]+$/.test(found)) return { isOk: true, token: found }
  const place = tokenFile === undefined ? 'token' : `token in "${tokenFile}"`
  return {
    isOk: false,
    message: `Cannot use the ${place}: it is empty or not one printable word`,
    hint: 'check what the token file, --token or SBX_TOKEN holds',
  }
}
