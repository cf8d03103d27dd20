import { parseArgs, type ParseArgsConfig } from 'node:util'

/** The options that a script was given; a wrong one ends it with a line that names it, and how the script is used. */
export function readOptions<T extends ParseArgsConfig['options']>(options: T, usage: string) {
  try {
    return parseArgs({ options }).values
  } catch (error) {
    const [why] = (error instanceof Error ? error.message : String(error)).split('. ')
    console.error(`error: ${why}\nhint: ${usage}`)
    process.exit(2)
  }
}
