import { fileTexts } from '../texts/files.ts'

/** The root of a workspace. */
export const ROOT = '.'

/** The folder that something is in. */
export function parentOf(path: string): string {
  const at = path.lastIndexOf('/')
  return at === -1 ? ROOT : path.slice(0, at)
}

/** A name in a folder. */
export function joinPath(folder: string, name: string): string {
  return folder === ROOT ? name : `${folder}/${name}`
}

/** Whether something is a folder or in it. */
export function isWithin(path: string, folder: string): boolean {
  return folder === ROOT || path === folder || path.startsWith(`${folder}/`)
}

/** A path as lists spell it, whatever way it was typed. */
export function cleanPath(typed: string): string {
  const names = typed.split('/').filter((name) => name !== '' && name !== '.')
  return names.length === 0 ? ROOT : names.join('/')
}

/** Where something is after what it is, or what it is in, was moved; undefined when it was not. */
export function movedPath(path: string, from: string, to: string): string | undefined {
  return from !== ROOT && isWithin(path, from) ? `${to}${path.slice(from.length)}` : undefined
}

/** Why a name cannot be one of a file; undefined when it can. */
export function findNameProblem(name: string): string | undefined {
  if (name === '' || name === '.' || name === '..') return fileTexts.nameProblems.empty
  if (name.includes('\0')) return fileTexts.nameProblems.character
  if (name.startsWith('/')) return fileTexts.nameProblems.absolute
  if (name.split('/').includes('..')) return fileTexts.nameProblems.parent
  return undefined
}
