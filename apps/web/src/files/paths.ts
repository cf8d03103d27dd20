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
export function nameTrouble(name: string): string | undefined {
  if (name === '' || name === '.' || name === '..') return 'A name is needed'
  if (name.includes('\0')) return 'A name cannot hold this character'
  if (name.startsWith('/')) return 'Paths are relative to the workspace'
  if (name.split('/').includes('..')) return 'A path cannot lead upwards'
  return undefined
}
