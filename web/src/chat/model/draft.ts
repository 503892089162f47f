import { noAttachments, type Attachments } from './files'

// Drafts: text that was typed and not sent, kept over reloads. A draft belongs to one session, or to the first page.

export interface Draft {
  text: string
  agent?: string // the agent it is for, if that is not the session's agent
  model?: string // of this and the following messages, if that is not the agent's
}

const prefix = 'parley.draft.'

export function readDraft(key: string): Draft {
  try {
    const value = JSON.parse(localStorage.getItem(prefix + key) ?? '{}') as Partial<Draft>
    return {
      text: typeof value.text === 'string' ? value.text : '',
      agent: typeof value.agent === 'string' ? value.agent : undefined,
      model: typeof value.model === 'string' ? value.model : undefined,
    }
  } catch {
    return { text: '' }
  }
}

export function writeDraft(key: string, draft: Draft): void {
  try {
    const { text, agent, model } = draft
    if (text === '' && agent === undefined && model === undefined) localStorage.removeItem(prefix + key)
    else localStorage.setItem(prefix + key, JSON.stringify(draft))
  } catch {
    // storage is full or forbidden: keep it as long as the page
  }
}

// The attachments of a draft are stored separately from its text, which is written at every key press.

export function readAttachments(key: string): Attachments {
  try {
    const kept = JSON.parse(localStorage.getItem(`${prefix}${key}.files`) ?? 'null') as Attachments | null
    return kept !== null && Array.isArray(kept.pictures) && Array.isArray(kept.files) ? kept : noAttachments
  } catch {
    return noAttachments
  }
}

export function writeAttachments(key: string, attachments: Attachments): void {
  try {
    localStorage.removeItem(`${prefix}${key}.files`)
    if (attachments.pictures.length + attachments.files.length > 0)
      localStorage.setItem(`${prefix}${key}.files`, JSON.stringify(attachments))
  } catch {
    // storage is full or forbidden: keep them as long as the page
  }
}
