import { expect, test } from 'bun:test'

import { planInstall } from './system-packages.ts'

const debianRoot = { isRoot: true, hasApt: true }

test('planInstall does nothing when nothing is missing', () => {
  expect(planInstall([], { isRoot: false, hasApt: false })).toEqual({ kind: 'nothing' })
})

test('planInstall installs missing packages as root with apt', () => {
  expect(planInstall(['procps'], debianRoot)).toEqual({ kind: 'install', names: ['procps'] })
})

test('planInstall skips without root', () => {
  const plan = planInstall(['procps'], { ...debianRoot, isRoot: false })
  expect(plan).toEqual({ kind: 'skip', reason: 'installing needs root' })
})

test('planInstall skips without apt', () => {
  const plan = planInstall(['procps'], { ...debianRoot, hasApt: false })
  expect(plan).toEqual({ kind: 'skip', reason: 'apt-get is not available' })
})
