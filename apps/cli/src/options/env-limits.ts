import { limits } from '@sandwire/protocol'
import { Wrong } from './words.ts'

type Variables = Readonly<Record<string, string>>

const FEWER = 'set the others where the command runs: -- bash -c "export NAME=VALUE ...; COMMAND"'
const AS_FILE = 'copy what is long to the sandbox as a file: sbx-stdio cp FILE SANDBOX:'

/** Refuses variables that no server takes: too many, or one that is too long. Throws `Wrong`. */
export function checkVariables(env: Variables): void {
  const entries = Object.entries(env)
  if (entries.length > limits.MAX_ENV_ENTRIES)
    throw new Wrong(
      `${entries.length} variables are too many: ${limits.MAX_ENV_ENTRIES} at most go along`,
      FEWER,
    )
  const long = entries.find(([, value]) => value.length > limits.MAX_ENV_CHARS)
  if (long !== undefined)
    throw new Wrong(
      `Variable "${long[0]}" is too long: it has ${long[1].length} characters, and ${limits.MAX_ENV_CHARS} at most go along`,
      AS_FILE,
    )
}

/** Refuses variables that do not fit into a hello. Throws `Wrong`. */
export function checkEnv(env: Variables): void {
  checkVariables(env)
  const { length } = JSON.stringify(env)
  if (length > limits.MAX_ENV_TOTAL_CHARS)
    throw new Wrong(
      `The variables are too long together: they have ${length} characters, and ${limits.MAX_ENV_TOTAL_CHARS} at most go along`,
      AS_FILE,
    )
}
