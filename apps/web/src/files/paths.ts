import { fileTexts } from '../texts/files.ts'

/** The workspace root. */
export const ROOT = '.'

/** The parent folder. */
export function parentOf(path: string): string {
  const at = path.lastIndexOf('/')
  return at === -1 ? ROOT : path.slice(0, at)
}

export function joinPath(folder: string, name: string): string {
  return folder === ROOT ? name : `${folder}/${name}`
}

/** True when `path` is `folder` or inside it. */
export function isWithin(path: string, folder: string): boolean {
  return folder === ROOT || path === folder || path.startsWith(`${folder}/`)
}

/** Normalizes a typed path. */
export function cleanPath(typed: string): string {
  const names = typed.split('/').filter((name) => name !== '' && name !== '.')
  return names.length === 0 ? ROOT : names.join('/')
}

/** The new path of something after `from` was moved to `to`; undefined when it is not affected. */
export function movedPath(path: string, from: string, to: string): string | undefined {
  return from !== ROOT && isWithin(path, from) ? `${to}${path.slice(from.length)}` : undefined
}

/** Why a path is invalid; undefined when it is valid. */
export function findNameProblem(name: string): string | undefined {
  if (name === '' || name === '.' || name === '..') return fileTexts.nameProblems.empty
  if (name.includes('\0')) return fileTexts.nameProblems.character
  if (name.startsWith('/')) return fileTexts.nameProblems.absolute
  if (name.split('/').includes('..')) return fileTexts.nameProblems.parent
  return undefined
}
