import { readFileSync } from 'node:fs'
import { importPublicKey } from '@sandwire/internal-api'
import type { CredentialArgument } from './arguments.ts'
import type { Credential } from './http/gatekeeper.ts'
import type { Log } from './log.ts'
import { openSecretFile } from './secret-file.ts'

/** A credential ready for use, or what is wrong with where it comes from. */
export type CredentialSource =
  | {
      readonly isOk: true
      readonly credential: Credential
      /** Removes the file that a secret came from; false when that fails. */
      readonly remove: () => boolean
    }
  | { readonly isOk: false; readonly message: string; readonly hint: string }

/** Reads what the command line names. */
export async function openCredential(argument: CredentialArgument, log: Log): Promise<CredentialSource> {
  switch (argument.kind) {
    case 'none':
      log.warn('insecure', { message: 'Anybody who reaches this address can run commands' })
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

/** The public key stays where it is: it lets nobody sign. */
async function openPublicKey(file: string, sandbox: string): Promise<CredentialSource> {
  try {
    const publicKey = await importPublicKey(readFileSync(file, 'utf8').trim())
    return { isOk: true, credential: { kind: 'token', publicKey, sandbox }, remove: () => true }
  } catch {
    // Missing, not readable or not a key: the hint covers all of them.
    return {
      isOk: false,
      message: `cannot use the public key in "${file}"`,
      hint: 'the file must be readable and hold 32 bytes in base64url',
    }
  }
}
