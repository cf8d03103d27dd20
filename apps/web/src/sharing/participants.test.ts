import { expect, test } from 'bun:test'
import {
  canReceiveControl,
  controlActionOf,
  controlText,
  findControlProblem,
  participantName,
  participantsOf,
  privateActionOf,
} from './participants.ts'

const presence = {
  type: 'presence',
  driver: 'a2',
  attachments: [
    { id: 'a1', role: 'viewer', name: 'Vi\u{202e} Ewer', connected: true },
    { id: 'a2', role: 'driver', name: 'ann', connected: true },
    { id: 'a3', role: 'viewer', name: '', connected: false },
  ],
  private: null,
} as const

test('lists the user first, with printable names', () => {
  expect(
    participantsOf({ presence: { ...presence, attachments: [...presence.attachments] }, attachment: 'a1' }),
  ).toEqual([
    {
      id: 'a1',
      role: 'viewer',
      name: 'Vi Ewer',
      initials: 'You',
      isSelf: true,
      isOwn: false,
      isGuest: false,
      isAgent: false,
      hasControl: false,
      isConnected: true,
    },
    {
      id: 'a2',
      role: 'driver',
      name: 'ann',
      initials: 'AN',
      isSelf: false,
      isOwn: false,
      isGuest: false,
      isAgent: false,
      hasControl: true,
      isConnected: true,
    },
    {
      id: 'a3',
      role: 'viewer',
      name: 'Unknown user',
      initials: 'UU',
      isSelf: false,
      isOwn: false,
      isGuest: false,
      isAgent: false,
      hasControl: false,
      isConnected: false,
    },
  ])
})

test('ignores bracketed words in initials, and always has some', () => {
  const attachments = ['Gus (guest)', 'Ann B. Cole', '🦊'].map((name, at) => ({
    id: `a${at}`,
    name,
    connected: true,
    role: 'viewer' as const,
  }))
  expect(
    participantsOf({ presence: { ...presence, attachments }, attachment: undefined }).map(
      ({ initials }) => initials,
    ),
  ).toEqual(['GU', 'AC', '🦊'])
})

test('offers to request control from a driver, and to take free control', () => {
  const of = (driver: string | null) => ({ ...presence, driver, attachments: [...presence.attachments] })
  expect(controlActionOf({ role: 'viewer', authority: 'driver', presence: of('a2') })).toBe('ask')
  expect(controlActionOf({ role: 'viewer', authority: 'driver', presence: of(null) })).toBe('take')
  expect(controlActionOf({ role: 'viewer', authority: 'driver', presence: of('a3') })).toBe('take')
  expect(controlActionOf({ role: 'viewer', authority: 'viewer', presence: of(null) })).toBeUndefined()
  expect(controlActionOf({ role: 'driver', authority: 'driver', presence: of('a1') })).toBeUndefined()
})

test('says that control was requested, to both sides', () => {
  const participants = participantsOf({
    presence: { ...presence, attachments: [...presence.attachments] },
    attachment: 'a1',
  })
  const [vi, ann] = participants
  const watching = { role: 'viewer', driver: ann, requester: undefined, canTakeByTyping: false } as const
  expect(controlText({ ...watching, isRequested: false })).toBe('ann has control')
  expect(controlText({ ...watching, isRequested: true })).toBe('Control requested. Waiting for ann')
  expect(controlText({ ...watching, role: 'collaborator', isRequested: false })).toBe('ann has control')
  expect(controlText({ ...watching, driver: undefined, isRequested: true })).toBe('Nobody has control')
  expect(controlText({ ...watching, driver: undefined, isRequested: false, canTakeByTyping: true })).toBe(
    'Type to take control',
  )
  const driving = { role: 'driver', driver: ann, isRequested: false, canTakeByTyping: false } as const
  expect(controlText({ ...driving, requester: undefined })).toBe('You have control')
  expect(controlText({ ...driving, requester: vi })).toBe('Control requested by Vi Ewer')
})

function peopleNamed(names: readonly string[], roles: readonly ('driver' | 'collaborator' | 'viewer')[]) {
  const attachments = names.map((name, at) => ({
    id: `a${at}`,
    name,
    connected: true,
    role: roles[at] ?? 'viewer',
  }))
  return participantsOf({
    presence: { ...presence, driver: 'a0', attachments },
    attachment: `a${names.length - 1}`,
  })
}

test('marks guests before their name, where it cannot be cut off', () => {
  const [self, gus, nameless] = peopleNamed(['Gus (guest)', 'guest', 'ann'], ['driver'])
  if (self === undefined || gus === undefined || nameless === undefined)
    throw new Error('A participant is missing')
  expect([self, gus, nameless].map(participantName)).toEqual(['ann (you)', 'Guest Gus', 'Guest'])
  const watching = {
    role: 'viewer',
    requester: undefined,
    canTakeByTyping: false,
    isRequested: false,
  } as const
  expect(controlText({ ...watching, driver: gus })).toBe('Guest Gus has control')
  expect(controlText({ ...watching, driver: gus, isRequested: true })).toBe(
    'Control requested. Waiting for guest Gus',
  )
  expect(controlText({ ...watching, role: 'driver', driver: self, requester: nameless })).toBe(
    'Control requested by guest',
  )
})

test("tells the user's own windows from others, but never by names of guests", () => {
  const [self, ann] = peopleNamed(['ann', 'ann'], ['driver'])
  expect([self, ann].map((one) => (one === undefined ? '' : participantName(one)))).toEqual([
    'ann (you)',
    'ann (you, in another window)',
  ])
  const watching = {
    role: 'viewer',
    driver: ann,
    requester: undefined,
    isRequested: false,
    canTakeByTyping: false,
  } as const
  expect(controlText(watching)).toBe('You have control in another window')
  expect(controlText({ ...watching, role: 'driver', requester: ann })).toBe(
    'Control requested by your other window',
  )
  const guests = peopleNamed(['Gus (guest)', 'Gus (guest)'], ['driver'])
  expect(guests.map(({ isOwn }) => isOwn)).toEqual([false, false])
})

test('offers control only to participants who may have it, and says why not', () => {
  const participants = peopleNamed(['Gus', 'Cleo', 'Dan', 'ann', 'ann'], ['viewer', 'collaborator'])
  const offered = participants
    .filter((one) => canReceiveControl(one, new Set(['a2'])))
    .map(({ name }) => name)
  expect(offered).toEqual(['Cleo', 'Dan', 'ann'])
  const away = participants.map((one) => ({ ...one, isConnected: false }))
  expect(away.some((one) => canReceiveControl(one, new Set(['a2'])))).toBe(false)
  expect(participants.map(findControlProblem)[0]).toBe('')
  expect(participants.map(findControlProblem)[1]).toContain('Viewers')
})

test('marks agents, whatever their name, and lets the user give them control', () => {
  const attachments = [
    { id: 'a1', name: 'ann', connected: true, role: 'driver' },
    { id: 'a2', name: 'ann', connected: true, role: 'viewer', agent: true },
    { id: 'a3', name: 'guest', connected: true, role: 'viewer', agent: true },
  ] as const
  const [, agent, other] = participantsOf({
    presence: { ...presence, driver: 'a1', attachments },
    attachment: 'a1',
  })
  if (agent === undefined || other === undefined) throw new Error('A participant is missing')
  expect([agent, other].map(participantName)).toEqual(['Agent ann', 'Agent guest'])
  expect(canReceiveControl(agent, new Set())).toBe(true)
})

test('offers private input to users who may type beside an agent', () => {
  const of = (isAgent: boolean, owner: string | null) => ({
    ...presence,
    attachments: [
      {
        id: 'a2',
        role: 'viewer' as const,
        name: 'x',
        connected: true,
        ...(isAgent && { agent: true as const }),
      },
    ],
    private: owner,
  })
  expect(privateActionOf({ role: 'driver', presence: of(true, null) })).toBe('begin')
  expect(privateActionOf({ role: 'collaborator', presence: of(true, 'a1') })).toBe('end')
  expect(privateActionOf({ role: 'driver', presence: of(false, null) })).toBeUndefined()
  expect(privateActionOf({ role: 'driver', presence: of(false, 'a1') })).toBe('end')
  expect(privateActionOf({ role: 'viewer', presence: of(true, null) })).toBeUndefined()
})
