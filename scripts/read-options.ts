import { parseArgs, type ParseArgsConfig } from 'node:util'

/** Parses a script's options; exits with an error and the usage for an invalid one. */
export function readOptions<T extends ParseArgsConfig['options']>(options: T, usage: string) {
  try {
    return parseArgs({ options }).values
  } catch (error) {
    const [why] = (error instanceof Error ? error.message : String(error)).split('. ')
    console.error(`error: ${why}\nhint: ${usage}`)
    process.exit(2)
  }
}
