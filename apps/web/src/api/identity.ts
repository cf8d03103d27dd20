import { ApiError, request, requestJson } from './request.ts'

export interface Person {
  readonly account: string
  readonly name: string
  readonly guest: boolean
}

/** Who is signed in; undefined: nobody. */
export async function whoAmI(): Promise<Person | undefined> {
  try {
    return await requestJson<Person>('/api/whoami')
  } catch (caught) {
    if (caught instanceof ApiError && caught.status === 401) return undefined
    throw caught
  }
}

export async function signOut(): Promise<void> {
  await request('/api/signout', { method: 'POST' })
}
