import { lstatSync, readFileSync, unlinkSync } from 'node:fs'
import { shape } from '@sandwire/protocol'

/** Variables for processes, or what is wrong with the file they are in. */
export type EnvFile =
  | { readonly isOk: true; readonly env: Readonly<Record<string, string>> }
  | { readonly isOk: false; readonly message: string }

const MAX_ENTRIES = 256
const MAX_VALUE_CHARS = 32 * 1024
const envShape = shape.dictionary(
  MAX_ENTRIES,
  /^[A-Za-z_][A-Za-z0-9_]{0,255}$/,
  shape.text(MAX_VALUE_CHARS, /^[^\0]*$/),
)

/** Reads variables from a file with a JSON object, and removes it: it says what processes get, once. */
export function takeEnvFile(file: string): EnvFile {
  const wrong = (why: string): EnvFile => ({
    isOk: false,
    message: `cannot take the environment from "${file}": ${why}`,
  })
  try {
    if (!lstatSync(file).isFile()) return wrong('not a regular file')
    const env = envShape.decode(JSON.parse(readFileSync(file, 'utf8')))
    if (env === undefined) return wrong('expected an object of texts under plain names')
    unlinkSync(file)
    return { isOk: true, env: { ...env } }
  } catch (error) {
    // A parser's message would quote the file.
    return wrong(error instanceof Error && 'code' in error ? String(error.code) : 'not JSON')
  }
}
