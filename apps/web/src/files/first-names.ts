import { shownName } from './shown-name.ts'
import { fileTexts } from '../texts/files.ts'

/** The first of many paths, a line each, and how many more there are. */
export function firstNames(paths: readonly string[], max: number): string {
  const more = paths.length - max
  const names = paths.slice(0, max).map(shownName)
  return (more > 0 ? [...names, fileTexts.andMore(more)] : names).join('\n')
}
