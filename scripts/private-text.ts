/** A line with text that is specific to one machine. */
export type Finding = { readonly line: number; readonly text: string }

// Assembled from parts, so that this file does not match itself.
const homes = ['work', 'root'].join('|')
const hosts = [
  ['registry', 'npmjs'],
  ['deb', 'debian'],
]
  .map((parts) => parts.join('\\.'))
  .join('|')
const privatePath = new RegExp(`(?<![\\w.~}-])/(?:${homes})/`)
const registryHost = new RegExp(hosts)

const defaultRegistry = `https://${['registry', 'npmjs', 'org'].join('.')}/`

/** Finds absolute paths of a developer's machine and, unless naming them is the file's purpose, hosts of package registries. */
export function findPrivateText(content: string, registryHosts: 'refused' | 'data' = 'refused'): Finding[] {
  return content
    .split('\n')
    .map((text, index) => ({ line: index + 1, text: text.trim() }))
    .filter(({ text }) => privatePath.test(text) || (registryHosts === 'refused' && registryHost.test(text)))
}

/** Finds packages that the lockfile takes from anywhere but the default registry or a workspace folder. */
export function findForeignSources(lockfile: string): Finding[] {
  return lockfile
    .split('\n')
    .map((text, index) => ({ line: index + 1, text: text.trim() }))
    .filter(({ text }) => {
      const source = /^"resolved": "([^"]*)"/.exec(text)?.[1]
      return (
        source !== undefined && !source.startsWith(defaultRegistry) && !/^(?:apps|packages)\//.test(source)
      )
    })
}
