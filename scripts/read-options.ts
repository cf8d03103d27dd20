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

/** Parses an option that is a whole number; exits with an error and the usage otherwise. */
export function readWholeNumber(text: string, usage: string): number {
  if (/^[0-9]{1,10}$/.test(text)) return Number(text)
  console.error(`error: Cannot use "${text}": expected a whole number\nhint: ${usage}`)
  process.exit(2)
}
