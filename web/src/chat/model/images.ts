// Images of a message, within the limits of the server.

export interface Picture {
  name: string
  url: string // data:
  bytes: number
}

export const maxImages = 4
export const maxBytes = 4 * 1024 * 1024 // of all together
const types = ['image/png', 'image/jpeg', 'image/gif', 'image/webp']
export const accept = types.join(',')

interface Chosen {
  pictures: Picture[]
  problems: string[] // why others were not taken
}

// choose adds files to the chosen images, and says for each rejected file why it was rejected.
export async function choose(have: Picture[], files: File[]): Promise<Chosen> {
  const pictures = [...have]
  const problems: string[] = []
  for (const file of files) {
    const all = pictures.reduce((sum, picture) => sum + picture.bytes, 0)
    if (!types.includes(file.type)) problems.push(`${file.name} is not a PNG, JPEG, GIF or WebP image.`)
    else if (pictures.length >= maxImages)
      problems.push(`${file.name} was not added: a message has at most ${maxImages} images.`)
    else if (all + file.size > maxBytes)
      problems.push(`${file.name} was not added: the images of a message have at most 4 MiB.`)
    else pictures.push({ name: file.name, url: await read(file), bytes: file.size })
  }
  return { pictures, problems }
}

function read(file: File): Promise<string> {
  return new Promise((resolve, reject) => {
    const reader = new FileReader()
    reader.onload = () => resolve(String(reader.result))
    reader.onerror = () => reject(reader.error ?? new Error('unreadable'))
    reader.readAsDataURL(file)
  })
}
