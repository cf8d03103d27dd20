import { lstatSync, readFileSync, unlinkSync } from 'node:fs'

/** Shortest secret that is taken; 16 characters of hex are 64 bits. */
const MIN_SECRET_CHARS = 16

/** A secret and how to remove the file it came from, or what is wrong with it. */
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

function wrong(file: string, why: string, hint: string): SecretFile {
  return { isOk: false, message: `cannot take the secret from "${file}": ${why}`, hint }
}

/** Reads the secret. The file stays until `remove`, so that a start that fails can be tried again. */
export function openSecretFile(file: string): SecretFile {
  try {
    const found = lstatSync(file)
    // Removing a link would leave the secret where it is.
    if (!found.isFile())
      return wrong(file, 'not a regular file', 'give the file itself, not a link or a device')
    const secret = readFileSync(file, 'utf8').trim()
    if (secret.length < MIN_SECRET_CHARS || !/^[\x21-\x7e]+$/.test(secret))
      return wrong(file, 'too short or not printable', `use at least ${MIN_SECRET_CHARS} random characters`)
    return { isOk: true, secret, isExposed: (found.mode & 0o077) !== 0, remove: () => remove(file) }
  } catch (error) {
    const code = error instanceof Error && 'code' in error ? String(error.code) : 'unreadable'
    return wrong(file, code, 'the file must exist and be readable')
  }
}

function remove(file: string): boolean {
  try {
    unlinkSync(file)
    return true
  } catch {
    // The caller refuses to run with a secret that stays around.
    return false
  }
}
