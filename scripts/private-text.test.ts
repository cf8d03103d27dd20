import { expect, test } from 'bun:test'

import { findForeignSources, findPrivateText } from './private-text.ts'

const home = `/${'work'}/main/x.ts`
const registry = ['registry', 'npmjs', 'org'].join('.')

test('findPrivateText finds absolute paths of a machine', () => {
  expect(findPrivateText(`ok\nsee ${home}\n'/${'root'}/.npmrc'`)).toEqual([
    { line: 2, text: `see ${home}` },
    { line: 3, text: `'/${'root'}/.npmrc'` },
  ])
})

test('findPrivateText finds registry hosts', () => {
  expect(findPrivateText(`from https://${registry}/`)).toHaveLength(1)
})

test('findPrivateText allows registries in a list of registries, but no paths', () => {
  expect(findPrivateText(`'${registry}'`, 'data')).toEqual([])
  expect(findPrivateText(`'${registry}'\n${home}`, 'data')).toEqual([{ line: 2, text: home }])
})

test('findPrivateText ignores other paths', () => {
  expect(findPrivateText(`a/work/b ./root/x \${dir}/work/ /workspace/ /home/me/work/`)).toEqual([])
})

test('findForeignSources accepts workspaces, the default registry and no source', () => {
  const lockfile = `"resolved": "apps/cli",\n"resolved": "https://${registry}/x/-/x-1.tgz",\n"version": "1.0.0"`
  expect(findForeignSources(lockfile)).toEqual([])
})

test('findForeignSources finds a mirror', () => {
  const mirror = '"resolved": "https://mirror.example/x/-/x-1.tgz",'
  expect(findForeignSources(`{\n  ${mirror}\n}`)).toEqual([{ line: 2, text: mirror }])
})
