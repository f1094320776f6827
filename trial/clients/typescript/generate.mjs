#!/usr/bin/env node
// Types of a trial, from the OpenAPI document of its service: node generate.mjs openapi.json > src/types.ts

import { readFileSync } from "node:fs";

const [source] = process.argv.slice(2);
if (!source) {
  console.error("usage: omg-trial-types openapi.json (curl https://trial.example.org/openapi.json -o openapi.json)");
  process.exit(2);
}
const content = JSON.parse(readFileSync(source, "utf8"));
const schemas = content.components?.schemas ?? content.$defs;

function type(schema) {
  if (schema.$ref) return schema.$ref.split("/").at(-1);
  if ("const" in schema) return JSON.stringify(schema.const);
  if (schema.enum) return schema.enum.map((each) => JSON.stringify(each)).join(" | ");
  if (schema.anyOf) return schema.anyOf.map(type).join(" | ");
  if (Array.isArray(schema.type)) return schema.type.map((each) => type({ type: each })).join(" | ");
  if (schema.type === "array") {
    const inside = type(schema.items ?? {});
    return inside.includes(" ") ? `(${inside})[]` : `${inside}[]`;
  }
  if (schema.type === "object" && schema.properties) return `{ ${fields(schema).join(" ")} }`;
  if (schema.type === "object") return `Record<string, ${type(schema.additionalProperties || {})}>`;
  return { integer: "number", number: "number", string: "string", boolean: "boolean", null: "null" }[schema.type] ?? "unknown";
}

const comment = (text, indent) => (text ? [`${indent}/** ${text.replace(/\s+/g, " ").replace(/\*\//g, "* /")} */`] : []);

function fields(schema, indent = "") {
  const name = (each) => (/^[A-Za-z_]\w*$/.test(each) ? each : JSON.stringify(each));
  return Object.entries(schema.properties ?? {}).flatMap(([each, inside]) => [
    ...comment(indent && inside.description, indent),
    `${indent}${name(each)}${schema.required?.includes(each) ? "" : "?"}: ${type(inside)};`,
  ]);
}

const made = Object.entries(schemas).sort(([one], [other]) => (one < other ? -1 : 1)).flatMap(([name, schema]) => [
  "",
  ...comment(schema.description, ""),
  ...(schema.properties || !Object.keys(schema).some((each) => ["enum", "anyOf", "$ref"].includes(each))
    ? [`export interface ${name} {`, ...fields(schema, "  "), "}"]
    : [`export type ${name} = ${type(schema)};`]),
]);
console.log(["// Made by generate.mjs from the OpenAPI document of the service; not edited by hand.", ...made].join("\n"));
