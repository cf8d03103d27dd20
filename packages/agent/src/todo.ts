import type { RunEvent, TodoItem } from './event.ts'
import { type Json, recordAt, recordsAt, textAt } from './json.ts'

const MAX_ITEMS = 200
const MAX_ITEM_CHARS = 1_000

type TodoEvent = Extract<RunEvent, { type: 'todo' }>

interface Task {
  readonly content: string
  readonly active: string | undefined
  readonly status: TodoItem['status']
}

/**
 * The agent's todo list, from either family of tools: `TodoWrite` replaces the whole list, `TaskCreate` and `TaskUpdate` change
 * single tasks, whose ids are known from the result of the creation.
 */
export class TodoList {
  #tasks = new Map<string, Task>()
  /** The event of the current list, to leave out repetitions. */
  #last = ''

  /** Called with a tool's input, before it runs. */
  called(name: string, input: Json): TodoEvent | undefined {
    if (name !== 'TodoWrite') return undefined
    const todos = recordsAt(input, 'todos').slice(0, MAX_ITEMS)
    this.#tasks = new Map(todos.map((todo, index) => [String(index + 1), taskOf(todo, 'content')]))
    return this.#changed()
  }

  /** Called with a tool's input and structured result, after it succeeded. */
  succeeded(name: string, input: Json, result: Json | undefined): TodoEvent | undefined {
    if (name === 'TaskCreate') {
      const task = recordAt(result, 'task')
      const id = textAt(task, 'id')
      if (id === undefined || this.#tasks.size >= MAX_ITEMS) return undefined
      this.#tasks.set(id, taskOf({ ...input, ...task, status: 'pending' }, 'subject'))
      return this.#changed()
    }
    if (name !== 'TaskUpdate') return undefined
    const id = textAt(input, 'taskId')
    const old = id === undefined ? undefined : this.#tasks.get(id)
    if (id === undefined || old === undefined) return undefined
    if (input['status'] === 'deleted') this.#tasks.delete(id)
    else
      this.#tasks.set(id, {
        content: bound(textAt(input, 'subject')) ?? old.content,
        active: bound(textAt(input, 'activeForm')) ?? old.active,
        status: statusOf(input['status']) ?? old.status,
      })
    return this.#changed()
  }

  #changed(): TodoEvent | undefined {
    const tasks = [...this.#tasks]
    const items = tasks.map(([id, { content, status }]) => ({ id, content, status }))
    const current = tasks.find(([, { status }]) => status === 'in_progress')?.[1]
    const active = current?.active ?? current?.content
    const event: TodoEvent = { type: 'todo', items, ...(active === undefined ? {} : { active }) }
    const text = JSON.stringify(event)
    if (text === this.#last) return undefined
    this.#last = text
    return event
  }
}

function taskOf(source: Json, contentField: string): Task {
  return {
    content: bound(textAt(source, contentField)) ?? '',
    active: bound(textAt(source, 'activeForm')),
    status: statusOf(source['status']) ?? 'pending',
  }
}

function bound(text: string | undefined): string | undefined {
  return text?.slice(0, MAX_ITEM_CHARS).toWellFormed()
}

function statusOf(value: unknown): TodoItem['status'] | undefined {
  return value === 'pending' || value === 'in_progress' || value === 'completed' ? value : undefined
}
