/** Longest folder that is believed. */
const MAX_CHARS = 4096

/** The folder in what a shell says with OSC 7: `file://machine/folder`; undefined for anything else. */
export function toldFolder(data: string): string | undefined {
  const [, path] = /^file:\/\/[^/]*(\/.*)$/su.exec(data) ?? []
  if (path === undefined || path.length > MAX_CHARS) return undefined
  try {
    return decodeURIComponent(path)
  } catch {
    // Said without being encoded.
    return path
  }
}
