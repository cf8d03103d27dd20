import path from 'node:path'
import { type Environment, read } from './input.ts'

/** Where versions of sandboxes' files are stored; undefined: nowhere. */
export type StoreSettings = { readonly folder: string } | undefined

/** `SANDWIRE_STORE`: `none`, or an absolute folder, such as one on another disk. Default: in the data folder. */
export function validateStore(env: Environment, dataFolder: string, problems: string[]): StoreSettings {
  const text = read(env, 'SANDWIRE_STORE')
  if (text === undefined) return { folder: path.join(dataFolder, 'store') }
  if (text === 'none') return undefined
  if (path.isAbsolute(text)) return { folder: path.normalize(text) }
  problems.push(`SANDWIRE_STORE is "${text}": give an absolute folder, or none`)
  return undefined
}
