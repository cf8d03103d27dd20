import { lstatSync, readFileSync, unlinkSync } from 'node:fs'
import { importPublicKey } from '@sandwire/internal-api'
import type { CredentialArgument } from './arguments.ts'
import type { Credential } from './http/request-guard.ts'
import type { Log } from './log.ts'

/** A credential, or why it cannot be read. */
export type CredentialSource =
  | {
      readonly isOk: true
      readonly credential: Credential
      /** Removes the file that holds the secret; false when that fails. */
      readonly remove: () => boolean
    }
  | { readonly isOk: false; readonly message: string; readonly hint: string }

/** Reads the credential that the command line names. */
export async function openCredential(argument: CredentialArgument, log: Log): Promise<CredentialSource> {
  switch (argument.kind) {
    case 'none':
      log.warn('insecure', { message: 'Any client that reaches this address can run commands' })
      return { isOk: true, credential: argument, remove: () => true }
    case 'secret': {
      const opened = openSecretFile(argument.file)
      if (!opened.isOk) return opened
      if (opened.isExposed) log.warn('secret_exposed', { message: 'Other users can read the secret file' })
      return { isOk: true, credential: { kind: 'secret', secret: opened.secret }, remove: opened.remove }
    }
    case 'token':
      return openPublicKey(argument.publicKeyFile, argument.sandbox)
  }
}

/** The file stays: a public key is no secret. */
async function openPublicKey(file: string, sandbox: string): Promise<CredentialSource> {
  try {
    const publicKey = await importPublicKey(readFileSync(file, 'utf8').trim())
    return { isOk: true, credential: { kind: 'token', publicKey, sandbox }, remove: () => true }
  } catch {
    // Missing, not readable or not a key: the hint covers all three.
    return {
      isOk: false,
      message: `cannot use the public key in "${file}"`,
      hint: 'the file must be readable and hold 32 bytes in base64url',
    }
  }
}

/** Shortest secret that is accepted; 16 hex digits are 64 bits. */
const MIN_SECRET_CHARS = 16

/** A secret, or why its file cannot be used. */
export type SecretFile =
  | {
      readonly isOk: true
      readonly secret: string
      /** Other users can read the file. */
      readonly isExposed: boolean
      /** Removes the file, so that nothing in the sandbox can read it again. False when that fails. */
      readonly remove: () => boolean
    }
  | { readonly isOk: false; readonly message: string; readonly hint: string }

function invalid(file: string, problem: string, hint: string): SecretFile {
  return { isOk: false, message: `cannot read the secret from "${file}": ${problem}`, hint }
}

/** Reads the secret. The file stays until `remove`, so that a failed start can be repeated. */
export function openSecretFile(file: string): SecretFile {
  try {
    const found = lstatSync(file)
    // Removing a link would leave the secret in place.
    if (!found.isFile())
      return invalid(file, 'not a regular file', 'give the file itself, not a link or a device')
    const secret = readFileSync(file, 'utf8').trim()
    if (secret.length < MIN_SECRET_CHARS || !/^[\x21-\x7e]+$/.test(secret))
      return invalid(file, 'too short or not printable', `use at least ${MIN_SECRET_CHARS} random characters`)
    return { isOk: true, secret, isExposed: (found.mode & 0o077) !== 0, remove: () => remove(file) }
  } catch (error) {
    const code = error instanceof Error && 'code' in error ? String(error.code) : 'unreadable'
    return invalid(file, code, 'the file must exist and be readable')
  }
}

function remove(file: string): boolean {
  try {
    unlinkSync(file)
    return true
  } catch {
    // The caller does not start while the file remains.
    return false
  }
}
