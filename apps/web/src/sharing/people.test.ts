import { expect, test } from 'bun:test'
import { driveActionOf, driveTextOf, peopleOf } from './people.ts'

const presence = {
  type: 'presence',
  driver: 'a2',
  attachments: [
    { id: 'a1', role: 'viewer', name: 'Vi\u{202e} Ewer', connected: true },
    { id: 'a2', role: 'driver', name: 'ann', connected: true },
    { id: 'a3', role: 'viewer', name: '', connected: false },
  ],
} as const

test('this person comes first, and names are only printable', () => {
  expect(
    peopleOf({ presence: { ...presence, attachments: [...presence.attachments] }, attachment: 'a1' }),
  ).toEqual([
    {
      id: 'a1',
      role: 'viewer',
      name: 'Vi Ewer',
      initials: 'VE',
      isSelf: true,
      drives: false,
      isConnected: true,
    },
    { id: 'a2', role: 'driver', name: 'ann', initials: 'AN', isSelf: false, drives: true, isConnected: true },
    {
      id: 'a3',
      role: 'viewer',
      name: 'Somebody',
      initials: 'SO',
      isSelf: false,
      drives: false,
      isConnected: false,
    },
  ])
})

test('what stands in brackets is no initial, and a name of none has some all the same', () => {
  const attachments = ['Gus (guest)', 'Ann B. Cole', '🦊'].map((name, at) => ({
    ...{ id: `a${at}`, name, connected: true },
    role: 'viewer' as const,
  }))
  expect(
    peopleOf({ presence: { ...presence, attachments }, attachment: undefined }).map(
      ({ initials }) => initials,
    ),
  ).toEqual(['GU', 'AC', '🦊'])
})

test('who may drive asks who does, and takes over from nobody', () => {
  const of = (driver: string | null) => ({ ...presence, driver, attachments: [...presence.attachments] })
  expect(driveActionOf({ role: 'viewer', authority: 'driver', presence: of('a2') })).toBe('ask')
  expect(driveActionOf({ role: 'viewer', authority: 'driver', presence: of(null) })).toBe('take')
  expect(driveActionOf({ role: 'viewer', authority: 'driver', presence: of('a3') })).toBe('take')
  expect(driveActionOf({ role: 'viewer', authority: 'viewer', presence: of(null) })).toBeUndefined()
  expect(driveActionOf({ role: 'driver', authority: 'driver', presence: of('a1') })).toBeUndefined()
})

test('who asks to drive is told that it was said, and who drives that somebody asks', () => {
  const people = peopleOf({
    presence: { ...presence, attachments: [...presence.attachments] },
    attachment: 'a1',
  })
  const [vi, ann] = people
  const watching = { role: 'viewer', driver: ann, asker: undefined } as const
  expect(driveTextOf({ ...watching, isAsked: false })).toBe('ann drives; you watch')
  expect(driveTextOf({ ...watching, isAsked: true })).toBe('Asked; waiting for ann')
  expect(driveTextOf({ ...watching, role: 'collaborator', isAsked: false })).toBe('ann drives')
  expect(driveTextOf({ ...watching, driver: undefined, isAsked: true })).toBe('Nobody drives')
  const driving = { role: 'driver', driver: ann, isAsked: false } as const
  expect(driveTextOf({ ...driving, asker: undefined })).toBe('You drive')
  expect(driveTextOf({ ...driving, asker: vi })).toBe('You drive; Vi Ewer asks to drive')
})
