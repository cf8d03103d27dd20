/** A path in the workspace, from a folder there and a path in that folder. What means nothing, such as `./`, is left out. */
export function pathIn(folder: string, path: string): string {
  return `${folder}/${path}`
    .split('/')
    .filter((name) => name !== '' && name !== '.')
    .join('/')
}
