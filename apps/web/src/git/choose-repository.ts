import { ROOT } from '../files/paths.ts'

/** Which of the repositories is shown: the one that was chosen if it is still there, the workspace's own, or the first. */
export function chooseRepository(found: readonly string[], chosen: string | undefined): string {
  if (chosen !== undefined && found.includes(chosen)) return chosen
  return found.includes(ROOT) ? ROOT : (found[0] ?? ROOT)
}

/** Whether there is anything to choose, or to say of the one that is shown. */
export function needsChooser(found: readonly string[]): boolean {
  return found.length > 1 || (found.length === 1 && found[0] !== ROOT)
}

/** Levels below the workspace that repositories are looked for in. */
const MAX_DEPTH = 2

/** Whether what changed may be a repository that came or went: one, or a folder that it could lie in. */
export function mayBeRepository(paths: readonly string[]): boolean {
  return paths.some((path) => {
    const names = path.split('/')
    const depth = names.at(-1) === '.git' ? names.length - 1 : names.length
    return depth <= MAX_DEPTH && !names.slice(0, -1).includes('.git')
  })
}
