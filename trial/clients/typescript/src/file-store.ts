// A store in a file, for apps that run under node. A new text is written beside the old one and then takes its place.

import { open, readFile, rename } from "node:fs/promises";

import type { Store } from "./outbox.js";

export class FileStore implements Store {
  constructor(private readonly path: string) {}

  async getItem(): Promise<string | null> {
    try {
      return await readFile(this.path, "utf8");
    } catch (error) {
      if ((error as NodeJS.ErrnoException).code === "ENOENT") return null;
      throw error;
    }
  }

  async setItem(_: string, value: string): Promise<void> {
    const file = await open(`${this.path}.new`, "w", 0o600); // nobody else's to read
    try {
      await file.writeFile(value);
      await file.sync();
    } finally {
      await file.close();
    }
    await rename(`${this.path}.new`, this.path);
  }
}
